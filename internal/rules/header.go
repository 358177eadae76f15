package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Presence is what a condition on a header or query parameter asks for. The zero value asks for one of its values.
type Presence uint8

// The kinds of condition.
const (
	Values  Presence = iota // it has one of the listed values
	Present                 // it is there, even empty
	Absent                  // the request does not have it
)

// HeaderCondition is a condition on one header. A request without HTTP fails every one, Absent too.
type HeaderCondition struct {
	// Name is the header's name in lower case.
	Name     string
	Presence Presence
	// Values are compared byte for byte, with Presence Values only; without any the condition never holds.
	Values []string
}

// ParseHeaderName returns the header name in lower case; it must be a token as HTTP has it.
func ParseHeaderName(text string) (string, error) {
	isToken := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	}
	if text == "" || strings.ContainsFunc(text, func(c rune) bool { return !isToken(c) }) {
		return "", fmt.Errorf("%q is no header name, wanted letters, digits and `-`", text)
	}
	return strings.ToLower(text), nil
}

// header returns how many lines the header has and their values joined with commas. Envoy hands over either the lines or
// what they join to; as both are seen as the joined value, both are decided alike.
func (r *Request) header(name string) (value string, lines int) {
	for i := range r.Headers {
		if r.Headers[i].Name != name {
			continue
		}
		if lines++; lines == 1 {
			value = r.Headers[i].Value
		} else {
			value += "," + r.Headers[i].Value
		}
	}
	return value, lines
}

// holds decides the condition on an HTTP request. A header may have several values: with all, each must be listed;
// without, one is enough.
func (c *HeaderCondition) holds(req *Request, all bool) bool {
	value, lines := req.header(c.Name)
	switch {
	case c.Presence == Present:
		return lines > 0
	case c.Presence == Absent || lines == 0:
		return c.Presence == Absent && lines == 0
	case slices.Contains(c.Values, value):
		return true
	case all:
		return c.listsAll(value)
	}
	return slices.ContainsFunc(c.Values, func(listed string) bool { return hasItem(value, listed) })
}

// listsAll reports whether every comma-separated item of value is listed.
func (c *HeaderCondition) listsAll(value string) bool {
	for item := range strings.SplitSeq(value, ",") {
		if !slices.Contains(c.Values, strings.Trim(item, " \t")) {
			return false
		}
	}
	return true
}

// hasItem reports whether item stands in value between commas or the ends, spaces around it aside. An item with commas of
// its own is found too: it may have been a whole line before Envoy joined it with others.
func hasItem(value, item string) bool {
	for more := true; more; {
		value = strings.TrimLeft(value, " \t")
		if after, ok := strings.CutPrefix(value, item); ok {
			if after = strings.TrimLeft(after, " \t"); after == "" || after[0] == ',' {
				return true
			}
		}
		_, value, more = strings.Cut(value, ",")
	}
	return false
}
