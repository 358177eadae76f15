package config

import (
	"slices"
	"strings"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// The attributes: those that stand alone, and those that go before a dot and a name.
var (
	plainAttributes = []string{"client_ip", "method", "host", "path", "route", "principal"}
	namedAttributes = []string{"header", "query", "cookie", "extension", "metadata"}
)

// key reads the attributes that make up a bucket's key.
func (v value) key() []rules.Attribute {
	entries, _ := v.list(0, "a list of attributes like [client_ip, route]")
	var key []rules.Attribute
	seen := map[string]bool{}
	for _, entry := range entries {
		attribute, ok := entry.attribute()
		switch {
		case !ok:
		case seen[attribute.String()]:
			entry.fail("%s is here twice, wanted each attribute once", quote(entry.node.Value))
		default:
			seen[attribute.String()] = true
			key = append(key, attribute)
		}
	}
	return key
}

func (v value) attribute() (a rules.Attribute, ok bool) {
	text, ok := v.text("an attribute like client_ip or header.x-api-key")
	if !ok {
		return a, false
	}
	a, err := rules.ParseAttribute(text)
	switch {
	case err != nil:
		v.fail("%s%s", oneLine(err), didYouMean(nearestAttribute(text)))
	case a.String() == "header.host":
		v.fail("%s is in no request, as Envoy sends it as :authority, wanted host", quote(text))
	}
	return a, err == nil && a.String() != "header.host"
}

// nearestAttribute returns the attribute that a misspelt one means; "" when that is unknown.
func nearestAttribute(text string) string {
	kind, name, ok := strings.Cut(text, ".")
	if ok && name != "" && !slices.Contains(namedAttributes, kind) {
		if better := nearest(kind, namedAttributes); better != "" {
			return better + "." + name
		}
	}
	return nearest(text, plainAttributes)
}
