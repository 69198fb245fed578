//go:build tools

// Package helm keeps `go mod tidy` from forgetting what is built.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
