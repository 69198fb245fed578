// Command podmodel writes the table that kruise.api.core works from: the fields of the published Kubernetes types and
// the defaults that the API server gives to pods, pod templates and claims.
//
// Run it whenever the Kubernetes version in go.mod changes, and check in what it prints:
//
//	cd hack/kubernetes && go run ./podmodel > ../../src/kruise/api/core/table.json
//
// The fields come from reflection over k8s.io/api. The defaults are found by probing: an object in which every list has
// one element and every pointer to a struct is set, but every leaf is zero, goes through the generated defaulting code of
// the API server, and what changed is recorded by type and field. A second probe leaves pointers to structs unset, which
// shows the structs that defaulting creates. Defaults that depend on other fields (image tag, requests from limits, host
// ports, a volume without a source) are rules in Python; the probe shows only their outcome for empty input.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
)

// groupVersions lists what the table covers; order does not matter.
var groupVersions = map[string]bool{
	"v1": true, "apps/v1": true, "batch/v1": true, "policy/v1": true, "coordination.k8s.io/v1": true,
	"storage.k8s.io/v1": true, "scheduling.k8s.io/v1": true, "networking.k8s.io/v1": true,
	"rbac.authorization.k8s.io/v1": true, "admissionregistration.k8s.io/v1": true, "apiextensions.k8s.io/v1": true,
	"events.k8s.io/v1": true, "discovery.k8s.io/v1": true, "autoscaling/v1": true, "autoscaling/v2": true,
	"certificates.k8s.io/v1": true, "node.k8s.io/v1": true,
}

// leaves are types with a form of their own on the wire.
var leaves = map[reflect.Type]string{
	reflect.TypeOf(resource.Quantity{}):    "quantity",
	reflect.TypeOf(intstr.IntOrString{}):   "intorstring",
	reflect.TypeOf(metav1.Time{}):          "time",
	reflect.TypeOf(metav1.MicroTime{}):     "microtime",
	reflect.TypeOf(metav1.Duration{}):      "duration",
	reflect.TypeOf(runtime.RawExtension{}): "raw",
	reflect.TypeOf(metav1.FieldsV1{}):      "raw",
	reflect.TypeOf([]byte{}):               "bytes",
}

var marshaler = reflect.TypeOf((*json.Marshaler)(nil)).Elem()

type table struct {
	types map[string][][]string
}

// name interns a struct type: core.Container, meta.ObjectMeta, autoscaling/v2.MetricSpec.
func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	group, version := parts[len(parts)-2], parts[len(parts)-1]
	if version == "v1" {
		return group + "." + t.Name()
	}
	return group + "/" + version + "." + t.Name()
}

// describe gives the wire type, and adds every struct that it reaches to the table.
func (tb *table) describe(t reflect.Type) string {
	if leaf, found := leaves[t]; found {
		return leaf
	}
	if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return "raw"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64, reflect.Int, reflect.Uint32, reflect.Uint8, reflect.Int8, reflect.Int16:
		return t.Kind().String()
	case reflect.Float32, reflect.Float64:
		return "float"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + tb.describe(t.Elem())
	case reflect.Map:
		return "{}" + tb.describe(t.Elem())
	case reflect.Pointer:
		return tb.describe(t.Elem())
	case reflect.Struct:
		tb.add(t)
		return name(t)
	}
	fmt.Fprintf(os.Stderr, "podmodel: no wire form for type %s\n", t)
	os.Exit(1)
	return ""
}

func (tb *table) add(t reflect.Type) {
	key := name(t)
	if _, done := tb.types[key]; done {
		return
	}
	tb.types[key] = nil // breaks cycles
	tb.types[key] = tb.fields(t)
}

// fields lists a struct's fields in order, with inlined structs spread out as encoding/json does.
func (tb *table) fields(t reflect.Type) [][]string {
	rows := [][]string{}
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		if tag[0] == "-" || (field.PkgPath != "" && !field.Anonymous) {
			continue
		}
		kind := field.Type
		if tag[0] == "" {
			if kind.Kind() == reflect.Pointer {
				kind = kind.Elem()
			}
			rows = append(rows, tb.fields(kind)...)
			continue
		}
		flags := ""
		if kind.Kind() == reflect.Pointer {
			flags += "p"
			kind = kind.Elem()
		}
		for _, option := range tag[1:] {
			switch option {
			case "omitempty":
				flags += "o"
			case "omitzero":
				flags += "z"
			}
		}
		row := []string{tag[0], tb.describe(kind), flags, field.Tag.Get("patchStrategy"), field.Tag.Get("patchMergeKey")}
		for len(row) > 2 && row[len(row)-1] == "" {
			row = row[:len(row)-1]
		}
		rows = append(rows, row)
	}
	return rows
}

// fill gives every list one element and, if asked, sets every pointer to a struct. Leaves stay zero.
func fill(v reflect.Value, pointers bool, depth int) {
	if depth > 24 {
		return
	}
	if _, leaf := leaves[v.Type()]; leaf {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), pointers, depth+1)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), pointers, depth+1)
		}
	case reflect.Pointer:
		if pointers && v.Type().Elem().Kind() == reflect.Struct {
			if _, leaf := leaves[v.Type().Elem()]; !leaf {
				v.Set(reflect.New(v.Type().Elem()))
				fill(v.Elem(), pointers, depth+1)
			}
		}
	}
}

// outcomes collects, by type and JSON name, the value that a field has after defaulting; "" where it stayed as it was.
type outcomes map[string]map[string]map[string]bool

func (o outcomes) note(kind, field, value string) {
	if o[kind] == nil {
		o[kind] = map[string]map[string]bool{}
	}
	if o[kind][field] == nil {
		o[kind][field] = map[string]bool{}
	}
	o[kind][field][value] = true
}

func (o outcomes) compare(owner string, before, after reflect.Value) {
	for i := range before.NumField() {
		field := before.Type().Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")[0]
		if tag == "-" || (field.PkgPath != "" && !field.Anonymous) {
			continue
		}
		b, a := before.Field(i), after.Field(i)
		if tag == "" {
			o.compare(owner, indirect(b), indirect(a))
			continue
		}
		if b.Kind() == reflect.Slice && b.Type().Elem().Kind() == reflect.Struct && b.Len() == 1 {
			o.compare(name(b.Type().Elem()), b.Index(0), a.Index(0))
			continue
		}
		if _, leaf := leaves[indirectType(b.Type())]; !leaf && indirectType(b.Type()).Kind() == reflect.Struct &&
			(b.Kind() == reflect.Struct || !b.IsNil()) {
			o.compare(name(indirectType(b.Type())), indirect(b), indirect(a))
			continue
		}
		if reflect.DeepEqual(b.Interface(), a.Interface()) {
			o.note(owner, tag, "")
			continue
		}
		text, err := json.Marshal(a.Interface())
		if err != nil {
			panic(err)
		}
		o.note(owner, tag, string(text))
	}
}

func indirectType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func indirect(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer {
		return v.Elem()
	}
	return v
}

// probe returns the defaults by type and field. A field that is defaulted in one place must be defaulted to the same
// value in every place: the table could not say it otherwise.
func probe[T any](setDefaults func(*T)) map[string]map[string]json.RawMessage {
	found := map[string]map[string]json.RawMessage{}
	for _, pointers := range []bool{true, false} {
		before, after := new(T), new(T)
		fill(reflect.ValueOf(before).Elem(), pointers, 0)
		fill(reflect.ValueOf(after).Elem(), pointers, 0)
		setDefaults(after)
		seen := outcomes{}
		seen.compare(name(reflect.TypeOf(*before)), reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem())
		for kind, fields := range seen {
			for field, values := range fields {
				delete(values, "")
				if len(values) > 1 {
					fmt.Fprintf(os.Stderr, "podmodel: %s.%s has several defaults: %v\n", kind, field, values)
					os.Exit(1)
				}
				for value := range values {
					if found[kind] == nil {
						found[kind] = map[string]json.RawMessage{}
					}
					if known, twice := found[kind][field]; !twice || string(known) == "{}" {
						found[kind][field] = json.RawMessage(value)
					}
				}
			}
		}
	}
	return found
}

func main() {
	must(apiextensionsv1.AddToScheme(scheme.Scheme))
	tb := &table{types: map[string][][]string{}}
	kinds := map[string]string{}
	for gvk, kind := range scheme.Scheme.AllKnownTypes() {
		apiVersion, _ := gvk.ToAPIVersionAndKind()
		if !groupVersions[apiVersion] || strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") ||
			gvk.Kind == "WatchEvent" {
			continue
		}
		if !strings.HasPrefix(kind.PkgPath(), "k8s.io/api/") && !strings.HasPrefix(kind.PkgPath(), "k8s.io/apiextensions") {
			continue
		}
		kinds[apiVersion+"/"+gvk.Kind] = tb.describe(kind)
	}
	defaults := map[string]any{
		"template": probe(func(t *corev1.PodTemplate) { coredefaults.SetObjectDefaults_PodTemplate(t) }),
		"pod":      probe(func(p *corev1.Pod) { coredefaults.SetObjectDefaults_Pod(p) }),
		"claim":    probe(func(c *corev1.PersistentVolumeClaim) { coredefaults.SetObjectDefaults_PersistentVolumeClaim(c) }),
	}

	out := &bytes.Buffer{}
	fmt.Fprintf(out, "{\n\"kubernetes\": %q,\n", kubernetesVersion())
	section(out, "kinds", kinds)
	fmt.Fprint(out, ",\n")
	section(out, "types", tb.types)
	fmt.Fprint(out, ",\n")
	section(out, "defaults", defaults)
	fmt.Fprint(out, "\n}\n")
	_, err := out.WriteTo(os.Stdout)
	must(err)
}

// kubernetesVersion is the version that go.mod pins.
func kubernetesVersion() string {
	info, found := debug.ReadBuildInfo()
	if found {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/kubernetes" {
				return module.Version
			}
		}
	}
	must(errors.New("the program was built without module information; run it with go run"))
	return ""
}

// section writes a map with one line for each key, so that a new Kubernetes version gives a readable difference.
func section[V any](out *bytes.Buffer, title string, values map[string]V) {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	fmt.Fprintf(out, "%q: {\n", title)
	for i, key := range keys {
		text, err := json.Marshal(values[key])
		must(err)
		fmt.Fprintf(out, "%q:%s", key, text)
		if i < len(keys)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteByte('}')
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "podmodel:", err)
		os.Exit(1)
	}
}
