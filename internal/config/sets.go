package config

import (
	_ "embed"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// AddressSets are lists of address ranges by the name under which client_ip may use them.
type AddressSets map[string][]netip.Prefix

// cloudflare is one range a line; the file says where it is from and when it was taken.
//
//go:embed cloudflare.txt
var cloudflare string

// setName is what a set may be called. No address is such a name: it would have a dot or a colon.
var setName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// BuiltinSets returns the sets that need no file: cloudflare, the ranges that Cloudflare publishes as those of its edge.
func BuiltinSets() AddressSets {
	ranges, _ := parseSet("cloudflare.txt", cloudflare) // fixed text, proven by a test
	return AddressSets{"cloudflare": ranges}
}

// ReadSets returns the builtin sets together with those in a directory: each file NAME.txt in it adds the set NAME, or
// replaces the builtin one of that name. A file has one address or CIDR range a line; # begins a comment. An error says
// all that is wrong with all of the files: what cannot be read, and Problems.
func ReadSets(dir string) (AddressSets, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sets := BuiltinSets()
	var unreadable []error
	var wrong Problems
	for _, entry := range entries {
		name, isSet := strings.CutSuffix(entry.Name(), ".txt")
		if !isSet {
			continue
		}
		file := filepath.Join(dir, entry.Name())
		text, err := os.ReadFile(file)
		if err != nil {
			unreadable = append(unreadable, err)
			continue
		}
		ranges, problems := parseSet(file, string(text))
		if !setName.MatchString(name) {
			problems = append(problems, Problem{File: file, Line: 1, Column: 1,
				Message: "the file's name is no name for a set, wanted NAME.txt with a NAME of lower-case letters, digits and hyphens"})
		}
		sets[name], wrong = ranges, append(wrong, problems...)
	}
	if wrong != nil {
		unreadable = append(unreadable, wrong)
	}
	if unreadable != nil {
		return nil, errors.Join(unreadable...)
	}
	return sets, nil
}

// parseSet reads the text of one file of ranges. A set without any would trust nobody, which is never meant.
func parseSet(file, text string) (ranges []netip.Prefix, problems []Problem) {
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		entry := strings.TrimSpace(line)
		if entry == "" {
			continue
		}
		prefix, err := rules.ParsePrefix(entry)
		if err != nil {
			column := 1 + len(line) - len(strings.TrimLeft(line, " \t"))
			problems = append(problems, Problem{File: file, Line: i + 1, Column: column, Message: err.Error()})
			continue
		}
		ranges = append(ranges, prefix)
	}
	if ranges == nil && problems == nil {
		problems = append(problems, Problem{File: file, Line: 1, Column: 1,
			Message: "the set is empty, wanted one address or CIDR range a line"})
	}
	return ranges, problems
}
