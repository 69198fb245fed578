"""The pod template model: types, canonical form, defaults and validation of pods and templates, as the API server does.

The knowledge is one table (`table.json`, written by `hack/kubernetes/podmodel` from the Go types), the code over it is
pure. Imports stay cheap: the table is read when it is first needed.

- `schema`: the table, and how native kinds are patched;
- `values`: canonical form, JSON as Go writes it, equality;
- `defaults`: what the API server and our workloads fill in;
- `validation`: what the API server refuses.
"""
