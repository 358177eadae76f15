package rules

import (
	"maps"
	"slices"
)

// Reads is what a set of rules may look at in a request. The zero value is nothing beside what always is: the method, host
// and path, the peer and the principal.
type Reads struct {
	headers map[string]struct{}
	lengths uint64 // bit n stands for header names of n bytes, bit 63 for all that are longer

	// Extensions, Metadata and EnvoyClient say whether the parts of a Request of these names are.
	Extensions, Metadata, EnvoyClient bool
}

// Header reports whether the header of that name, in lower case, is read.
func (r *Reads) Header(name string) bool {
	if r.lengths&lengthBit(name) == 0 { // spares most headers the search
		return false
	}
	_, ok := r.headers[name]
	return ok
}

func lengthBit(name string) uint64 { return 1 << min(len(name), 63) }

// Reads returns what the rules, their keys, costs and overrides and the client's address are read from, and content-type, by
// which gRPC requests are told.
func (s *Set) Reads() Reads {
	r := Reads{headers: map[string]struct{}{}, EnvoyClient: s.client.From == FromEnvoy}
	for _, name := range s.Headers() {
		r.headers[name] = struct{}{}
		r.lengths |= lengthBit(name)
	}
	for i := range s.list {
		matches, attributes := s.list[i].sources()
		r.Extensions = r.Extensions || reads(attributes, extensionAttribute) ||
			slices.ContainsFunc(matches, func(m *Match) bool { return len(m.Extensions) > 0 })
		r.Metadata = r.Metadata || reads(attributes, metadataAttribute) ||
			slices.ContainsFunc(matches, func(m *Match) bool { return len(m.Metadata) > 0 })
	}
	return r
}

func reads(attributes []Attribute, kind attributeKind) bool {
	return slices.ContainsFunc(attributes, func(a Attribute) bool { return a.kind == kind })
}

// Headers returns the names of the headers that are read; sorted, in lower case, each once. Envoy must hand these over.
func (s *Set) Headers() []string {
	names := append(slices.Collect(maps.Keys(s.Readers())), "content-type")
	slices.Sort(names)
	return slices.Compact(names)
}

// clientReader stands among the readers of a header for the client's address. No rule can have this name.
const clientReader = "client_ip"

// Readers returns, by the name of each header that is read, the names of the rules that read it, in file order; client_ip
// comes last where the client's address is read from it. content-type is among them only if a rule reads it.
func (s *Set) Readers() map[string][]string {
	readers := map[string][]string{}
	add := func(header, reader string) {
		if by := readers[header]; len(by) == 0 || by[len(by)-1] != reader {
			readers[header] = append(by, reader)
		}
	}
	for i := range s.list {
		for _, header := range s.list[i].headers() {
			add(header, s.list[i].Name)
		}
	}
	if s.client.From == FromHeaders {
		add(ForwardedFor, clientReader)
		for _, header := range s.client.Headers {
			add(header.Name, clientReader)
		}
	}
	return readers
}

// headers returns the names of the headers that the rule reads, in any order.
func (r *Rule) headers() (names []string) {
	matches, attributes := r.sources()
	for _, match := range matches {
		for _, condition := range match.Headers {
			names = append(names, condition.Name)
		}
	}
	for _, attribute := range attributes {
		switch attribute.kind {
		case headerAttribute:
			names = append(names, attribute.name)
		case cookieAttribute:
			names = append(names, cookieHeader)
		}
	}
	return names
}

// sources returns the conditions and attributes by which the rule goes.
func (r *Rule) sources() (matches []*Match, attributes []Attribute) {
	attributes = slices.Clone(r.Key)
	add := func(m *Match, from *CostFrom) {
		matches = append(matches, m)
		if from != nil {
			attributes = append(attributes, from.Attribute)
		}
	}
	add(&r.Match, r.CostFrom)
	for i := range r.Overrides {
		add(&r.Overrides[i].Match, r.Overrides[i].CostFrom)
	}
	return matches, attributes
}
