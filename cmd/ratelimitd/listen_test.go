package main

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimitd/ratelimitd/internal/config"
)

func TestAUnixSocketHasItsModeAndLeavesNothingBeside(t *testing.T) {
	path := filepath.Join(socketFolder(t), "r.sock")
	l, err := listen(config.Listen{Network: "unix", Address: path, Mode: 0o620})
	must(t, err)
	defer l.Close()
	if l.Addr().String() != path {
		t.Errorf("address %s, want %s", l.Addr(), path)
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode() != fs.ModeSocket|0o620 {
		t.Errorf("mode %s, want a socket with 0620", info.Mode())
	}
	if beside, _ := os.ReadDir(filepath.Dir(path)); len(beside) != 1 {
		t.Errorf("the folder holds %v, want the socket alone", beside)
	}
}

// D103
func TestASuccessorTakesAUnixSocketAndItsPredecessorsEndLeavesItAlone(t *testing.T) {
	path := filepath.Join(socketFolder(t), "r.sock")
	old, err := listenUnix(path, 0o660)
	must(t, err)
	successor, err := listenUnix(path, 0o660)
	must(t, err)
	must(t, old.Close())
	client, err := net.Dial("unix", path)
	must(t, err)
	client.Close()
	server, err := successor.Accept()
	must(t, err)
	server.Close()
	must(t, successor.Close())
	third, err := listenUnix(path, 0o660) // over a socket that nobody serves
	must(t, err)
	third.Close()
}

func TestAFailedListenSaysWhichAddressAndWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	dir := socketFolder(t)
	put(t, filepath.Join(dir, "file"), "precious")
	for _, c := range []struct {
		address config.Listen
		want    []string
	}{
		{config.Listen{Network: "tcp", Address: taken.Addr().String()}, []string{taken.Addr().String(), "another process listens there", "`listen`"}},
		{config.Listen{Network: "tcp", Address: "192.0.2.1:9001"}, []string{"192.0.2.1:9001", "no such address"}},
		{config.Listen{Network: "unix", Address: dir + "/none/r.sock"}, []string{"unix://" + dir + "/none/r.sock", "folder does not exist"}},
		{config.Listen{Network: "unix", Address: dir + "/file"}, []string{"unix://" + dir + "/file", "no socket"}},
		{config.Listen{Network: "unix", Address: dir + "/" + strings.Repeat("x", 120)}, []string{"longer than the"}},
	} {
		_, err := listen(c.address)
		if err == nil {
			t.Errorf("%v: no error", c.address)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %q does not say %q", c.address, err, want)
			}
		}
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "file")); string(text) != "precious" {
		t.Error("a file was overwritten by a socket")
	}
}

func TestAnAddressThatFailsTakesNoSocketFromTheProcessThatServes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	path := filepath.Join(socketFolder(t), "r.sock")
	serving, err := listenUnix(path, 0o660)
	must(t, err)
	defer serving.Close()
	before, err := os.Stat(path)
	must(t, err)
	unix := config.Listen{Network: "unix", Address: path, Mode: 0o660}
	for _, c := range []*config.Config{
		{Listen: []config.Listen{unix}, Admin: taken.Addr().String()},
		{Listen: []config.Listen{unix, {Network: "tcp", Address: taken.Addr().String()}}},
	} {
		if _, err := openListeners(c); err == nil {
			t.Fatal("no error")
		}
		if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("the socket was taken (%v)", err)
		}
	}
}

// socketFolder is a folder with a short path: that of a socket holds about 100 bytes.
func socketFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rl")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
