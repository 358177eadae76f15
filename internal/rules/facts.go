package rules

import (
	"net/netip"
	"slices"
	"strings"
)

// facts is what the rules ask of one request, each thing worked out once.
type facts struct {
	req            *Request
	source         *ClientIP
	host, path     string
	hostOK, pathOK bool

	resolved        bool // the three below are set
	client          netip.Addr
	clientUnknown   bool
	untrustedHeader bool
}

func newFacts(req *Request, source *ClientIP) facts {
	f := facts{req: req, source: source}
	if req.HTTP {
		f.host, f.hostOK = CanonicalHost(req.Host)
		f.path, f.pathOK = CanonicalPath(req.Path)
	}
	return f
}

// clientAddress is found only when a rule asks for it, so that clientUnknown means that one did.
func (f *facts) clientAddress() (client netip.Addr, known bool) {
	if !f.resolved {
		f.client, f.untrustedHeader = f.source.Resolve(f.req)
		f.clientUnknown = !f.client.IsValid()
		f.resolved = true
	}
	return f.client, !f.clientUnknown
}

// match reports whether all conditions hold, and the route: the text of the first path pattern that matched, or `*`. With
// all, every value of a repeated header or query parameter must match; without, one is enough. The client's address comes
// last, so that it is asked for only by rules that hinge on it.
func (f *facts) match(m *Match, all bool) (route string, ok bool) {
	if !f.req.HTTP && m.OnlyHTTP() {
		return "", false
	}
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, f.req.Method) {
		return "", false
	}
	if len(m.Hosts) > 0 && !f.matchHost(m.Hosts) {
		return "", false
	}
	route = "*"
	if len(m.Paths) > 0 {
		if route, ok = f.matchPath(m.Paths); !ok {
			return "", false
		}
	}
	if !f.matchValues(m, all) {
		return "", false
	}
	if len(m.ClientIPs) > 0 {
		client, known := f.clientAddress()
		return route, known && containsAddress(m.ClientIPs, client)
	}
	return route, true
}

func (f *facts) matchValues(m *Match, all bool) bool {
	for i := range m.Headers {
		if !m.Headers[i].holds(f.req, all) {
			return false
		}
	}
	for i := range m.Query {
		if !m.Query[i].holds(f.req, all) {
			return false
		}
	}
	for i := range m.Extensions {
		if !m.Extensions[i].holds(f.req) {
			return false
		}
	}
	for i := range m.Metadata {
		if !m.Metadata[i].holds(f.req) {
			return false
		}
	}
	return true
}

func (f *facts) matchHost(patterns []HostPattern) bool {
	for i := range patterns {
		if patterns[i].matches(f.host, f.hostOK) {
			return true
		}
	}
	return false
}

func (f *facts) matchPath(patterns []PathPattern) (route string, ok bool) {
	for i := range patterns {
		if patterns[i].matches(f.path, f.pathOK) {
			return patterns[i].text, true
		}
	}
	return "", false
}

// value returns an attribute as text and how often the request has it; of several values it is any. Envoy joins repeated
// header lines with commas, so a header with a comma counts as repeated.
func (f *facts) value(a Attribute, route string) (value string, count int) {
	switch a.kind {
	case clientAttribute:
		client, known := f.clientAddress()
		return once(client.String(), known)
	case routeAttribute:
		return route, 1
	case principalAttribute:
		return once(f.req.Principal, f.req.Principal != "")
	case extensionAttribute:
		value, ok := f.req.Extensions[a.name]
		return once(value, ok)
	case metadataAttribute:
		return once(f.req.metadata(a.metadata))
	}
	if !f.req.HTTP {
		return "", 0
	}
	switch a.kind {
	case methodAttribute:
		return once(f.req.Method, f.req.Method != "")
	case hostAttribute:
		return once(f.host, f.host != "")
	case pathAttribute:
		return once(f.path, f.path != "")
	case headerAttribute:
		value, count = f.req.header(a.name)
		return value, count + strings.Count(value, ",")
	case queryAttribute:
		return only(f.req.query(a.name))
	case cookieAttribute:
		return only(f.req.cookie(a.name))
	}
	return "", 0
}

func once(value string, ok bool) (string, int) {
	if !ok {
		return "", 0
	}
	return value, 1
}
