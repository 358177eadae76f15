package rules

import (
	"errors"
	"fmt"
	"strings"
)

// Attribute is something of a request that can separate one bucket from another or state a cost. ParseAttribute makes one;
// every request lacks the zero value.
type Attribute struct {
	kind     attributeKind
	text     string
	name     string       // of the header, query parameter, cookie or extension
	metadata MetadataPath // for a metadataAttribute
}

type attributeKind uint8

const (
	clientAttribute attributeKind = iota + 1
	methodAttribute
	hostAttribute
	pathAttribute
	routeAttribute
	principalAttribute
	headerAttribute
	queryAttribute
	cookieAttribute
	extensionAttribute
	metadataAttribute
)

var (
	plainAttributes = map[string]attributeKind{
		"client_ip": clientAttribute,
		"method":    methodAttribute,
		"host":      hostAttribute,
		"path":      pathAttribute,
		"route":     routeAttribute,
		"principal": principalAttribute,
	}
	namedAttributes = map[string]attributeKind{
		"header":    headerAttribute,
		"query":     queryAttribute,
		"cookie":    cookieAttribute,
		"extension": extensionAttribute,
		"metadata":  metadataAttribute,
	}
)

const wantAttribute = "wanted client_ip, method, host, path, route, principal, header.NAME, query.NAME, cookie.NAME, " +
	"extension.NAME or metadata.NAMESPACE:PATH"

// ParseAttribute reads an attribute: client_ip, method, host, path, route, principal, header.NAME, query.NAME, cookie.NAME,
// extension.NAME or metadata.NAMESPACE:PATH. A query parameter is named as it reads when decoded.
func ParseAttribute(text string) (Attribute, error) {
	if text == "" {
		return Attribute{}, errors.New("an empty attribute, " + wantAttribute)
	}
	if kind, ok := plainAttributes[text]; ok {
		return Attribute{kind: kind, text: text}, nil
	}
	word, name, _ := strings.Cut(text, ".")
	a := Attribute{kind: namedAttributes[word], text: text, name: name}
	var err error
	switch {
	case a.kind == 0 || word == text:
		return Attribute{}, fmt.Errorf("unknown attribute %q, %s", text, wantAttribute)
	case a.kind == headerAttribute:
		a.name, err = ParseHeaderName(name)
		a.text = word + "." + a.name
	case a.kind == cookieAttribute:
		err = checkCookieName(name)
	case a.kind == metadataAttribute:
		a.metadata, err = ParseMetadataPath(name)
	case name == "":
		err = fmt.Errorf("%q has no name, wanted %sNAME", text, text)
	}
	if err != nil {
		return Attribute{}, err
	}
	return a, nil
}

// checkCookieName wants a name that can be told from what stands around it in a cookie header.
func checkCookieName(name string) error {
	if name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("=;,", c) }) {
		return fmt.Errorf("%q is no cookie name, wanted printable characters other than space, `=`, `;` and `,`", name)
	}
	return nil
}

// String returns the attribute as it was written, a header's name in lower case.
func (a Attribute) String() string { return a.text }
