package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Metadata is what Envoy's other filters found out about a request.
type Metadata interface {
	// Value returns the text, number or boolean at that place as text: a number in its shortest decimal form, a boolean as
	// true or false. ok is false for anything else and where there is nothing.
	Value(at MetadataPath) (text string, ok bool)
}

// MetadataPath is a place in the metadata. ParseMetadataPath makes one; nothing is at the zero value.
type MetadataPath struct {
	// Namespace is mostly the name of the filter that wrote the value.
	Namespace string
	// Path is the names of the fields that lead to the value, each within the one before, with dots between them.
	Path string
}

// ParseMetadataPath reads NAMESPACE:PATH; the namespace ends at the first colon. A field whose own name has a dot cannot be
// reached.
func ParseMetadataPath(text string) (MetadataPath, error) {
	namespace, path, _ := strings.Cut(text, ":")
	if namespace == "" || slices.Contains(strings.Split(path, "."), "") {
		return MetadataPath{}, fmt.Errorf("%q is no place in the metadata, wanted NAMESPACE:PATH like envoy.filters.http.jwt_authn:payload.plan", text)
	}
	return MetadataPath{Namespace: namespace, Path: path}, nil
}

// String returns the place as it was written.
func (p MetadataPath) String() string { return p.Namespace + ":" + p.Path }

// MetadataCondition is a condition on one value of the metadata. A request without the value fails it.
type MetadataCondition struct {
	At MetadataPath
	// Values are compared byte for byte with the value as text; one is enough.
	Values []string
}

func (c *MetadataCondition) holds(req *Request) bool {
	value, ok := req.metadata(c.At)
	return ok && slices.Contains(c.Values, value)
}

// metadata returns the value at a place of the request's metadata.
func (r *Request) metadata(at MetadataPath) (text string, ok bool) {
	if r.Metadata == nil {
		return "", false
	}
	return r.Metadata.Value(at)
}

// ExtensionCondition is a condition on one of the extensions that Envoy's configuration gives a route. A request without the
// extension fails it.
type ExtensionCondition struct {
	Name string
	// Values are compared byte for byte; one is enough.
	Values []string
}

func (c *ExtensionCondition) holds(req *Request) bool {
	value, ok := req.Extensions[c.Name]
	return ok && slices.Contains(c.Values, value)
}
