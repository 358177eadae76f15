package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"
)

const wantListen = "host:port or unix:///path/of/the.sock, or a list of these"

// listen reads listen and admin.
func (f fields) listen(c *Config) {
	if v, ok := f.get("listen"); ok {
		entries := []value{v}
		if v.isList() {
			entries, _ = v.list(1, "at least one address: host:port or unix:///path/of/the.sock")
		}
		c.Listen = nil
		for _, entry := range entries {
			entry.listener(c)
		}
	}
	v, ok := f.get("admin")
	if !ok {
		return
	}
	text, ok := v.text(`host:port, or "" for no admin server`)
	if !ok {
		return
	}
	c.Admin = text
	if text == "" {
		return
	}
	if err := checkHostPort(text); err != nil {
		v.fail("%v, wanted host:port, or \"\" for no admin server", err)
		return
	}
	for _, l := range c.Listen {
		if l.Address == text && !anyPort(text) {
			v.fail("%s is also an address of listen, wanted another port", quote(text))
		}
	}
}

// listener adds one address to listen.
func (v value) listener(c *Config) {
	text, ok := v.text(wantListen)
	if !ok {
		return
	}
	l, err := parseListen(text)
	if err != nil {
		v.fail("%v", err)
		return
	}
	for _, other := range c.Listen {
		if other.Address == l.Address && !anyPort(l.Address) {
			v.fail("%s is here twice, wanted each address once", quote(text))
			return
		}
	}
	c.Listen = append(c.Listen, l)
}

func parseListen(text string) (Listen, error) {
	rest, isUnix := strings.CutPrefix(text, "unix:")
	if !isUnix {
		if err := checkHostPort(text); err != nil {
			return Listen{}, fmt.Errorf("%w, wanted %s", err, wantListen)
		}
		return Listen{Network: "tcp", Address: text}, nil
	}
	path, query, hasQuery := strings.Cut(strings.TrimPrefix(rest, "//"), "?")
	// The kernel's bound is 107 bytes; the daemon binds under a longer temporary name and renames it.
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || len(path) > 90 {
		return Listen{}, fmt.Errorf("%s is no socket, wanted unix:// and an absolute path of at most 90 bytes", quote(text))
	}
	l := Listen{Network: "unix", Address: path, Mode: 0o660}
	if !hasQuery {
		return l, nil
	}
	octal, isMode := strings.CutPrefix(query, "mode=")
	mode, err := strconv.ParseUint(octal, 8, 32)
	if !isMode || err != nil || mode > 0o777 {
		return Listen{}, fmt.Errorf("%s has the option %s, wanted ?mode= and permissions in octal like ?mode=0660", quote(text), quote(query))
	}
	l.Mode = fs.FileMode(mode)
	return l, nil
}

// String returns the address as the file writes it.
func (l Listen) String() string {
	if l.Network == "unix" {
		return fmt.Sprintf("unix://%s?mode=%04o", l.Address, l.Mode)
	}
	return l.Address
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// checkHostPort says what is wrong with a host:port, not what was wanted.
func checkHostPort(text string) error {
	host, port, err := net.SplitHostPort(text)
	var bad *net.AddrError
	switch n, e := strconv.ParseUint(port, 10, 16); {
	case errors.As(err, &bad):
		return fmt.Errorf("%s: %s", quote(text), bad.Err)
	case e != nil:
		return fmt.Errorf("%s has the port %s, which is not from 0 to %d", quote(text), quote(port), math.MaxUint16)
	case strconv.FormatUint(n, 10) != port:
		return fmt.Errorf("%s has the port %s, which is not plain digits", quote(text), quote(port))
	case !hostName.MatchString(host) && net.ParseIP(host) == nil:
		return fmt.Errorf("%s has the host %s, which is neither a name nor an address", quote(text), quote(host))
	}
	return nil
}

// anyPort reports whether the kernel chooses the port.
func anyPort(hostPort string) bool { return strings.HasSuffix(hostPort, ":0") }
