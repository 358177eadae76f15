package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// CanonicalHost returns the one spelling under which a request's host is matched and keyed: lower case, without port,
// without one trailing dot, an IPv6 address without brackets and in its shortest form. The canonical form of a canonical
// host is itself. ok is false, and host empty, for what is no host: an empty label, or anything but letters, digits, `-`,
// `_` and `.` (so a comma, which two Host lines leave, too).
func CanonicalHost(raw string) (host string, ok bool) {
	name, _, ok := cutPort(raw)
	if !ok {
		return "", false
	}
	if strings.Contains(name, ":") {
		addr, err := netip.ParseAddr(name)
		if err != nil || addr.Zone() != "" {
			return "", false
		}
		return addr.String(), true
	}
	name = strings.TrimSuffix(name, ".")
	if !isHostName(name) {
		return "", false
	}
	return strings.ToLower(name), true
}

// cutPort splits a host from its port. An IPv6 address may stand bare only when it has no port.
func cutPort(raw string) (name string, hasPort, ok bool) {
	rest := ""
	if inner, bracketed := strings.CutPrefix(raw, "["); bracketed {
		name, rest, ok = strings.Cut(inner, "]")
		if !ok || !strings.Contains(name, ":") {
			return "", false, false
		}
	} else if i := strings.IndexByte(raw, ':'); i >= 0 && !strings.Contains(raw[i+1:], ":") {
		name, rest = raw[:i], raw[i:]
	} else {
		name = raw
	}
	if rest == "" {
		return name, false, true
	}
	port, ok := strings.CutPrefix(rest, ":")
	return name, true, ok && strings.Trim(port, "0123456789") == ""
}

func isHostName(name string) bool {
	labelStarts := true
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '.':
			if labelStarts {
				return false
			}
			labelStarts = true
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
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
	if !ok {
		return HostPattern{}, fmt.Errorf("%q is no host, wanted letters, digits, `-`, `_` and `.`, or an IPv6 address", text)
	}
	if _, hasPort, _ := cutPort(name); hasPort {
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
