package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// document returns the one YAML document that the data must be.
func (d *decoder) document(data []byte) (root value, ok bool) {
	root = value{d: d, node: &yaml.Node{Line: 1, Column: 1}}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		d.syntax(data, err)
		return root, false
	}
	var document, next yaml.Node
	switch err := loader.Load(&document); {
	case errors.Is(err, io.EOF):
		root.fail("the file is empty, wanted at least the key rules")
		return root, false
	case err != nil:
		d.syntax(data, err)
		return root, false
	}
	switch err := loader.Load(&next); {
	case err == nil:
		root.entry("", &next).fail("a second YAML document begins here, wanted one document in a file")
	case !errors.Is(err, io.EOF):
		d.syntax(data, err)
	}
	if len(document.Content) != 1 {
		root.fail("the file is empty, wanted at least the key rules")
		return root, false
	}
	return root.entry("", document.Content[0]), true
}

// syntax notes what the YAML library could not read.
func (d *decoder) syntax(data []byte, err error) {
	p := Problem{File: d.file, Line: 1, Column: 1, Message: "this is not YAML: " + err.Error()}
	var le *yaml.LoadError
	if errors.As(err, &le) {
		p.Line, p.Column = le.Mark.Line, le.Mark.Column
		p.Message = "this is not YAML: " + le.Message
		if le.ContextMsg != "" {
			p.Message += " " + le.ContextMsg
			if from := le.ContextMark; from.Line > 0 && from != le.Mark {
				p.Message += fmt.Sprintf(" that begins at %d:%d", from.Line, from.Column)
			}
		}
		if p.Line < 1 {
			p.Line, p.Column = unreadable(data)
		}
	}
	p.Line, p.Column = max(p.Line, 1), max(p.Column, 1)
	d.problems = append(d.problems, p)
}

// unreadable returns the place of the first character that cannot stand in YAML: the library does not say it.
func unreadable(data []byte) (line, column int) {
	line, column = 1, 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == '\n':
			line, column = line+1, 0
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t' && r != '\r', r >= 0x7F && r < 0xA0 && r != 0x85:
			return line, column
		}
		column++
		data = data[size:]
	}
	return 1, 1
}
