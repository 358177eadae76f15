package main

import (
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func writeLog(t *testing.T, text string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	f, err := os.Create(filepath.Join(folder, "site.log.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zipped := gzip.NewWriter(f)
	if _, err := zipped.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestALogIsReadClientByClientInTheOrderOfTime(t *testing.T) {
	logs, err := readAccessLogs(writeLog(t, `192.0.2.1 - - [01/Jan/1970:01:00:02 +0100] "GET / HTTP/1.1" 200 1 "-" "-"
192.0.2.2 - - [01/Jan/1970:00:00:05 +0000] "\x16\x03" 400 0 "-" "-"
192.0.2.1 - - [01/Jan/1970:00:00:01 +0000] "GET / HTTP/1.1" 200 1 "-" "-"
192.0.2.1 - ann [01/Jan/1970:00:00:02 +0000] "GET /a]b HTTP/1.1" 200 1 "-" "-"
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(logs) != 1 || logs[0].name != "site" || logs[0].requests() != 4 {
		t.Fatalf("read %+v", logs)
	}
	for i, want := range [][]int64{{1000, 2000, 2500}, {5000}} {
		if got := logs[0].byClient()[i]; !slices.Equal(got, want) {
			t.Errorf("client %d asks at %v, want %v", i, got, want)
		}
	}
}

func TestALineThatIsNoLogLineIsNamed(t *testing.T) {
	_, err := readAccessLogs(writeLog(t, "192.0.2.1 - - [01/Jan/1970:00:00:02 +0000] \"-\" 400 0\nnonsense\n"))
	if err == nil || !strings.Contains(err.Error(), `site.log.gz: line 2: "nonsense"`) {
		t.Errorf("error %v, want one that names file, line and text", err)
	}
	_, err = readAccessLogs(writeLog(t, "192.0.2.1 - - [yesterday] \"-\" 400 0\n"))
	if err == nil || !strings.Contains(err.Error(), "yesterday") {
		t.Errorf("error %v, want one that names the time", err)
	}
}

func TestAFolderWithoutLogsIsToldFromABrokenOne(t *testing.T) {
	for _, folder := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing"), ""} {
		if _, err := readAccessLogs(folder); !errors.Is(err, errNoLogs) {
			t.Errorf("folder %q: %v, want %v", folder, err, errNoLogs)
		}
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "plain.log.gz"), []byte("not gzip"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readAccessLogs(folder); err == nil || errors.Is(err, errNoLogs) {
		t.Errorf("a log that is not gzip: %v", err)
	}
}
