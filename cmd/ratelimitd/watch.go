package main

import (
	"os"
	"time"
)

// How a change of the configuration file is felt. Polling sees every way in which a file changes, on every file system,
// also through the chain of symlinks by which Kubernetes swaps a ConfigMap.
const (
	pollEvery   = 250 * time.Millisecond
	settleAfter = 500 * time.Millisecond
)

// watcher tells when a file has changed and come to rest. It is driven by calls of settled and is not safe for concurrent
// use.
type watcher struct {
	look    func() os.FileInfo // what the path leads to now; nil when there is nothing
	seen    os.FileInfo
	changed time.Time // when seen was first seen; zero once the change was reported
}

// watchFile returns a watcher of the path, symlinks followed. What the path leads to now is no change.
func watchFile(path string) *watcher {
	look := func() os.FileInfo {
		info, err := os.Stat(path)
		if err != nil {
			return nil
		}
		return info
	}
	return &watcher{look: look, seen: look()}
}

// settled looks at the file and reports, once for each change, that it has been at rest for settleAfter. A file that is
// written slowly, or is away for a moment while it is replaced, is one change.
func (w *watcher) settled(now time.Time) bool {
	if info := w.look(); !sameState(info, w.seen) {
		w.seen, w.changed = info, now
		return false
	}
	if w.changed.IsZero() || now.Sub(w.changed) < settleAfter {
		return false
	}
	w.changed = time.Time{}
	return true
}

func sameState(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
