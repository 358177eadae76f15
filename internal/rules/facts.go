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

// match reports whether all conditions of the rule hold, and the route: the text of the first path pattern that matched,
// or `*`. The client's address comes last, so that it is asked for only by rules that hinge on it.
func (f *facts) match(r *compiledRule) (route string, ok bool) {
	m := &r.Match
	if r.needsHTTP && !f.req.HTTP {
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
	for i := range m.Headers {
		if !m.Headers[i].holds(f.req, r.Action == Allow) {
			return "", false
		}
	}
	if len(m.ClientIPs) > 0 {
		client, known := f.clientAddress()
		return route, known && containsAddress(m.ClientIPs, client)
	}
	return route, true
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

// value returns an attribute other than the client's address. ok is false when it is missing: absent, empty or, for a
// header, repeated; Envoy joins repeated lines with commas, so a comma counts as one.
func (f *facts) value(a Attribute, route string) (value string, ok bool) {
	switch a.kind {
	case methodAttribute:
		value = f.req.Method
	case hostAttribute:
		value = f.host
	case pathAttribute:
		value = f.path
	case routeAttribute:
		return route, true
	case headerAttribute:
		var lines int
		if value, lines = f.req.header(a.header); lines > 1 || strings.Contains(value, ",") {
			return "", false
		}
	}
	return value, f.req.HTTP && value != ""
}
