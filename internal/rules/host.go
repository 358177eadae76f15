package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// CanonicalHost returns the one spelling under which a request's host is matched and keyed: lower case, without port and
// trailing dots, an IPv6 address without brackets and in its shortest form. The canonical form of a canonical host is
// itself. It takes all that Envoy may route by its domains, also what no name server knows, so that no spelling of a host
// dodges its rule. ok is false, and host empty, for the rest: nothing, a comma (which two Host lines leave), spaces,
// control characters, bytes beyond ASCII, slashes, `?` and `#`, and brackets around anything but an IPv6 address.
func CanonicalHost(raw string) (host string, ok bool) {
	for i := range len(raw) {
		switch c := raw[i]; {
		case c <= 0x20 || c >= 0x7F, c == ',', c == '/', c == '\\', c == '?', c == '#':
			return "", false
		}
	}
	name, _, isAddress := cutPort(raw)
	if isAddress {
		return canonicalAddress(name)
	}
	name = strings.TrimRight(name, ".")
	if name == "" || strings.ContainsAny(name, "[]") {
		return "", false
	}
	return strings.ToLower(name), true
}

func canonicalAddress(text string) (host string, ok bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", false
	}
	return addr.String(), true
}

// cutPort splits a host from its port. It is an IPv6 address if it stands in brackets, or bare without a port.
func cutPort(raw string) (name string, hasPort, isAddress bool) {
	if inner, bracketed := strings.CutPrefix(raw, "["); bracketed {
		name, port, closed := strings.Cut(inner, "]")
		if !closed || port != "" && port[0] != ':' {
			return raw, false, false
		}
		return name, port != "", true
	}
	name, port, hasPort := strings.Cut(raw, ":")
	if hasPort && strings.IndexByte(port, ':') >= 0 { // an address has two; asked of every host, netip would make an error of most
		if _, ok := canonicalAddress(raw); ok {
			return raw, false, true
		}
	}
	return name, hasPort, false
}

// isHostName reports whether a host could have been meant: labels of letters, digits, `-` and `_`.
func isHostName(name string) bool {
	labelStarts := true
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '.':
			if labelStarts {
				return false
			}
			labelStarts = true
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			labelStarts = false
		default:
			return false
		}
	}
	return !labelStarts
}

// HostPattern says which hosts a rule is for. ParseHost makes one; the zero value matches no host.
type HostPattern struct {
	text string
	any  bool   // `*`: every host, also an unparsable one
	host string // canonical; begins with a dot when hosts below it match and not the host itself
}

// ParseHost reads a host pattern: a host, `*.` and a host for all hosts below it at any depth, or `*` for all hosts.
func ParseHost(text string) (HostPattern, error) {
	if text == "*" {
		return HostPattern{text: text, any: true}, nil
	}
	name, below := strings.CutPrefix(text, "*.")
	if strings.Contains(name, "*") {
		return HostPattern{}, errors.New("`*` in a host, wanted it alone or as its first label, as in `*.example.org`")
	}
	host, ok := CanonicalHost(name)
	_, hasPort, isAddress := cutPort(name)
	switch {
	case !ok || !isAddress && !isHostName(host):
		return HostPattern{}, fmt.Errorf("%q is no host, wanted letters, digits, `-`, `_` and `.`, or an IPv6 address", text)
	case hasPort:
		return HostPattern{}, errors.New("a host with a port, wanted it without: ports are not compared")
	}
	if below {
		host = "." + host
	}
	return HostPattern{text: text, host: host}, nil
}

// String returns the pattern as it was written.
func (p HostPattern) String() string { return p.text }

// matches takes what CanonicalHost returned.
func (p HostPattern) matches(host string, ok bool) bool {
	switch {
	case p.any:
		return true
	case !ok || p.host == "":
		return false
	case p.host[0] == '.':
		return strings.HasSuffix(host, p.host)
	}
	return host == p.host
}
