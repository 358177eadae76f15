package main

import (
	"bufio"
	"net"
	"reflect"
	"strings"
	"testing"
)

func TestAPatchMergesMapsAndRemovesByNull(t *testing.T) {
	into := tree{"kept": 1, "gone": 2, "deep": tree{"kept": 3, "changed": 4}, "list": []any{1, 2}}
	merge(into, tree{"gone": nil, "deep": tree{"changed": 5}, "list": []any{3}})
	want := tree{"kept": 1, "deep": tree{"kept": 3, "changed": 5}, "list": []any{3}}
	if !reflect.DeepEqual(into, want) {
		t.Errorf("got %v, want %v", into, want)
	}
}

// All variants are made of the deployed file, so it must keep the parts that they change.
func TestTheVariantsAreMadeOfTheDeployedFile(t *testing.T) {
	t.Chdir("../..")
	for name, row := range map[string]struct {
		change       func(*bootstrap) error
		holds, lacks []string
	}{
		"deployed":  {func(*bootstrap) error { return nil }, []string{"allowed_headers", "retry_policy", "/d.sock", "1.2.3.4"}, []string{"access_log\"", "0.1s"}},
		"plain":     {(*bootstrap).makePlain, []string{authzFilter, "/d.sock"}, []string{"allowed_headers", "retry_policy", "health_checks"}},
		"no filter": {func(b *bootstrap) error { b.replaceFilter(nil); return nil }, []string{"http.router"}, []string{authzFilter}},
	} {
		b, err := deployed("1.2.3.4:80", "/d.sock")
		if err == nil {
			err = row.change(b)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := b.text()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, part := range row.holds {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %s", name, part)
			}
		}
		for _, part := range row.lacks {
			if strings.Contains(text, part) {
				t.Errorf("%s holds %s", name, part)
			}
		}
	}
}

func TestAnAnswerWithoutLimitsIsNoticed(t *testing.T) {
	for answer, failed := range map[string]bool{
		"HTTP/1.1 200 OK\r\nx-ratelimit-limit: 1\r\ncontent-length: 3\r\n\r\nok\n": false,
		"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n":                         true,
		"HTTP/1.1 503 No\r\nx-ratelimit-limit: 1\r\ncontent-length: 0\r\n\r\n":     true,
	} {
		if _, _, err := answering(t, answer).ask(); (err != nil) != failed {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

// answering is a browser at a server that gives that answer to one request.
func answering(t *testing.T, answer string) *browser {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	go func() {
		_, _ = server.Read(make([]byte, 1<<14))
		_, _ = server.Write([]byte(answer))
	}()
	request := "GET " + likesPath + " HTTP/1.1\r\n\r\n"
	return &browser{conn: client, in: bufio.NewReader(client), request: []byte(request), at: strings.Index(request, "/00000/") + 1, limited: true}
}
