package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the messages beside the files of testdata instead of comparing them")

// golden compares lines with the text file beside a YAML file.
func golden(t *testing.T, yamlFile, lines string) {
	t.Helper()
	file := strings.TrimSuffix(yamlFile, ".yaml") + ".txt"
	if *update {
		if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if lines != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", lines, want)
	}
}

// eachFile parses each YAML file of a folder in testdata, under its base name.
func eachFile(t *testing.T, folder string, test func(t *testing.T, file string, c *Config, warnings []Problem, err error)) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || files == nil {
		t.Fatalf("no files in testdata/%s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, warnings, err := Parse(filepath.Base(file), data, nil)
			test(t, file, c, warnings, err)
		})
	}
}

// D70, D86, D87, D90, D117: whatever is wrong is said, all of it at once, with its place.
func TestEveryBadFileIsRefusedWithItsExactMessages(t *testing.T) {
	eachFile(t, "bad", func(t *testing.T, file string, c *Config, warnings []Problem, err error) {
		if err == nil {
			t.Fatal("the file is accepted")
		}
		if c != nil || warnings != nil {
			t.Error("a configuration or warnings beside an error")
		}
		golden(t, file, err.Error()+"\n")
	})
}

func TestEveryDubiousFileIsAcceptedWithItsExactWarnings(t *testing.T) {
	eachFile(t, "warn", func(t *testing.T, file string, c *Config, warnings []Problem, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if warnings == nil {
			t.Fatal("there is no warning")
		}
		golden(t, file, Problems(warnings).Error()+"\n")
	})
}

func TestEveryGoodFileIsAcceptedWithoutWarningsAndSurvivesItsEffectiveForm(t *testing.T) {
	eachFile(t, "good", func(t *testing.T, file string, c *Config, warnings []Problem, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if warnings != nil {
			t.Error(Problems(warnings))
		}
		golden(t, file, string(c.Effective()))
		roundTrip(t, c)
	})
}

// roundTrip checks that the effective form of a configuration without secrets means the same.
func roundTrip(t *testing.T, c *Config) {
	t.Helper()
	text := c.Effective()
	again, _, err := Parse("effective.yaml", text, AddressSets{})
	if err != nil {
		t.Fatalf("the effective form is refused:\n%v\n%s", err, text)
	}
	if !reflect.DeepEqual(again, c) || again.Hash() != c.Hash() {
		t.Errorf("the effective form means something else:\n%s\nthen:\n%s", text, again.Effective())
	}
	if !bytes.Equal(again.Effective(), text) {
		t.Errorf("the effective form is not stable:\n%s\nthen:\n%s", text, again.Effective())
	}
}
