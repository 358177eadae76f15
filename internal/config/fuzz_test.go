package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Whatever is in the file, Parse either says where it is wrong or gives a configuration whose effective form means the
// same.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || files == nil {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, warnings, err := Parse("fuzz.yaml", data, nil)
		checkProblems(t, warnings)
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("an error without problems: %v", err)
			}
			checkProblems(t, problems)
			return
		}
		if hasNoSecret := reflect.DeepEqual(c.masked(), c); hasNoSecret {
			roundTrip(t, c)
		}
	})
}

func checkProblems(t *testing.T, problems []Problem) {
	for _, p := range problems {
		if p.File != "fuzz.yaml" || p.Line < 1 || p.Column < 1 || p.Message == "" || strings.ContainsAny(p.String(), "\r\n") {
			t.Errorf("the problem %#v has no place, or more than one line", p)
		}
	}
}
