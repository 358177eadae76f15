package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// watched is a watcher of a real file, looked at by the clock of the test.
type watched struct {
	t       *testing.T
	watcher *watcher
	now     time.Time
	felt    int
}

func watch(t *testing.T, path string) *watched {
	return &watched{t: t, watcher: watchFile(path), now: time.Unix(1_700_000_000, 0)}
}

// pass lets time go by, with a look at every poll, and checks how many changes were felt since the last pass.
func (w *watched) pass(d time.Duration, want int) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(pollEvery)
		if w.watcher.settled(w.now) {
			w.felt++
		}
	}
	if w.felt != want {
		w.t.Errorf("felt %d changes within %s, want %d", w.felt, d, want)
	}
	w.felt = 0
}

// D88
func TestEveryWayToReplaceAFileIsFeltOnce(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, w *watched, dir, file string){
		"written in place": func(t *testing.T, _ *watched, _, file string) {
			put(t, file, "two")
		},
		"renamed over": func(t *testing.T, _ *watched, dir, file string) {
			put(t, filepath.Join(dir, "new"), "two")
			must(t, os.Rename(filepath.Join(dir, "new"), file))
		},
		"truncated, then written slowly": func(t *testing.T, w *watched, _, file string) {
			put(t, file, "")
			w.pass(pollEvery, 0)
			put(t, file, "t")
			w.pass(pollEvery, 0)
			put(t, file, "tw")
			w.pass(pollEvery, 0)
			put(t, file, "two")
		},
		"deleted and made again": func(t *testing.T, w *watched, _, file string) {
			must(t, os.Remove(file))
			w.pass(pollEvery, 0)
			put(t, file, "two")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "config.yaml")
			put(t, file, "one")
			w := watch(t, file)
			w.pass(time.Minute, 0)
			replace(t, w, dir, file)
			w.pass(time.Second, 1)
			w.pass(time.Minute, 0)
		})
	}
}

// D88: Kubernetes swaps the link ..data, through which the file is reached.
func TestASwappedConfigMapIsFeltOnce(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"..1", "..2"} {
		must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		put(t, filepath.Join(dir, version, "config.yaml"), "same size")
	}
	must(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	must(t, os.Symlink("..data/config.yaml", filepath.Join(dir, "config.yaml")))
	w := watch(t, filepath.Join(dir, "config.yaml"))
	w.pass(time.Second, 0)
	must(t, os.Symlink("..2", filepath.Join(dir, "..data_tmp")))
	must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	must(t, os.RemoveAll(filepath.Join(dir, "..1")))
	w.pass(time.Second, 1)
	w.pass(time.Minute, 0)
}

func TestAFileThatGoesIsOneChangeAndOneThatComesBackAnother(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	put(t, file, "one")
	w := watch(t, file)
	must(t, os.Remove(file))
	w.pass(time.Minute, 1)
	put(t, file, "one")
	w.pass(time.Second, 1)
}

func TestAChangeIsHeldBackUntilTheFileIsAtRest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	put(t, file, "")
	w := watch(t, file)
	text := ""
	for range 20 { // 5 s in which every look finds another size
		text += "x"
		put(t, file, text)
		w.pass(pollEvery, 0)
	}
	w.pass(settleAfter, 1)
}

func put(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(text), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
