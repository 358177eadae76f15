package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Problem is one thing in a file that is wrong, or that is valid and probably not what was meant.
type Problem struct {
	File string
	// Line and Column count from 1; the column counts characters.
	Line, Column int
	// Rule is the name of the rule that holds the problem; "" outside of the rules and in a rule without a name.
	Rule string
	// Field is the way to the key within the rule, or from the top of the file: match.paths, store.redis.url. "" is the
	// whole file.
	Field string
	// Message says what is wrong and what was wanted.
	Message string
}

// String returns the problem on one line: file:line:column: rule "name": field: message.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Rule != "" {
		fmt.Fprintf(&b, "rule %s: ", quote(p.Rule))
	}
	if p.Field != "" {
		fmt.Fprintf(&b, "%s: ", p.Field)
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems is everything that is wrong with a file, in the order of the lines. It is never empty when used as an error.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// inOrder sorts problems as they stand in the file and drops repetitions, which aliases make.
func inOrder(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(ps)
}

// quote shows text of the file within a message: on one line, and cut where it is longer than a message can bear.
func quote(text string) string { return fmt.Sprintf("%q", clip(text)) }

// clip cuts text that is longer than a message can bear.
func clip(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// oneLine makes a message of other code fit for a Problem.
func oneLine(err error) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '�'
		}
		return r
	}, err.Error())
}
