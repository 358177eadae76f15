package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ratelimitd/ratelimitd/internal/config"
)

// listeners are the open addresses.
type listeners struct {
	grpc  []net.Listener
	admin net.Listener // nil when it is off
}

// openListeners opens every address of the configuration, or none. Unix sockets come last: they are taken from a running
// predecessor only when all else is there.
func openListeners(c *config.Config) (open listeners, err error) {
	defer func() {
		if err != nil {
			open.close()
		}
	}()
	if c.Admin != "" {
		if open.admin, err = listenTCP("admin", c.Admin); err != nil {
			return open, err
		}
	}
	for _, network := range []string{"tcp", "unix"} {
		for _, address := range c.Listen {
			if address.Network != network {
				continue
			}
			l, err := listen(address)
			if err != nil {
				return open, err
			}
			open.grpc = append(open.grpc, l)
		}
	}
	return open, nil
}

func (l listeners) close() {
	if l.admin != nil {
		_ = l.admin.Close()
	}
	for _, g := range l.grpc {
		_ = g.Close()
	}
}

// addresses are those of gRPC, as the configuration writes them, with the ports that the system chose.
func (l listeners) addresses() []string {
	var all []string
	for _, g := range l.grpc {
		text := g.Addr().String()
		if g.Addr().Network() == "unix" {
			text = "unix://" + text
		}
		all = append(all, text)
	}
	return all
}

// adminAddress is "" when it is off.
func (l listeners) adminAddress() string {
	if l.admin == nil {
		return ""
	}
	return l.admin.Addr().String()
}

func listen(address config.Listen) (net.Listener, error) {
	if address.Network == "unix" {
		l, err := listenUnix(address.Address, address.Mode)
		return l, explainListen("listen", "unix://"+address.Address, err)
	}
	return listenTCP("listen", address.Address)
}

// listenTCP opens a TCP address; field is where the configuration states it.
func listenTCP(field, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	return l, explainListen(field, address, err)
}

// listenUnix opens a unix socket so that it takes the place of a predecessor's in one step: it is bound under a name of
// its own beside the path and renamed over it. Nobody removes the path when closing, for it may be the successor's by
// then.
func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, errors.New("something that is no socket has this name")
	}
	own := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%08x", rand.Uint32()))
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; max(len(path), len(own)) > most {
		return nil, fmt.Errorf("the path is longer than the %d bytes that a socket may have", most)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: own, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(own, mode); err == nil {
		err = os.Rename(own, path)
	}
	if err != nil {
		_ = l.Close()
		_ = os.Remove(own)
		return nil, err
	}
	return renamedListener{l, path}, nil
}

// renamedListener is a unix listener that knows the path that its socket was moved to.
type renamedListener struct {
	*net.UnixListener
	path string
}

func (l renamedListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// explainListen says which address could not be opened and what can be done about it.
func explainListen(field, address string, err error) error {
	if err == nil {
		return nil
	}
	advice := "choose another `" + field + "` in the configuration"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "another process listens there: stop it, or " + advice
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		advice = "this machine has no such address: " + advice
	case errors.Is(err, fs.ErrPermission):
		advice = "this user may not: give it the right, or " + advice
	case errors.Is(err, fs.ErrNotExist):
		advice = "the folder does not exist: create it, or " + advice
	}
	return fmt.Errorf("cannot listen on %s: %w (%s)", address, err, advice)
}
