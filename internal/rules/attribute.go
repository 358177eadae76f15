package rules

import (
	"errors"
	"fmt"
	"strings"
)

// Attribute is something of a request that can separate one bucket from another. ParseAttribute makes one; of the zero
// value every request lacks the value.
type Attribute struct {
	kind   attributeKind
	text   string
	header string // name of the header, for a headerAttribute
}

type attributeKind uint8

const (
	clientAttribute attributeKind = iota + 1
	methodAttribute
	hostAttribute
	pathAttribute
	routeAttribute
	headerAttribute
)

var attributeKinds = map[string]attributeKind{
	"client_ip": clientAttribute,
	"method":    methodAttribute,
	"host":      hostAttribute,
	"path":      pathAttribute,
	"route":     routeAttribute,
}

// ParseAttribute reads an attribute: client_ip, method, host, path, route or header.NAME.
func ParseAttribute(text string) (Attribute, error) {
	if kind, ok := attributeKinds[text]; ok {
		return Attribute{kind: kind, text: text}, nil
	}
	if header, ok := strings.CutPrefix(text, "header."); ok {
		name, err := ParseHeaderName(header)
		if err != nil {
			return Attribute{}, err
		}
		return Attribute{kind: headerAttribute, text: "header." + name, header: name}, nil
	}
	if text == "" {
		return Attribute{}, errors.New("an empty attribute, wanted client_ip, method, host, path, route or header.NAME")
	}
	return Attribute{}, fmt.Errorf("unknown attribute %q, wanted client_ip, method, host, path, route or header.NAME", text)
}

// String returns the attribute as it was written, a header's name in lower case.
func (a Attribute) String() string { return a.text }
