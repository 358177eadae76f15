package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ratelimitd/ratelimitd/internal/config"
)

// source is where the configuration comes from: the file and what the command line puts over it.
type source struct {
	file        string
	addressSets string // folder of NAME.txt files; "" for the built-in sets alone
	redisURL    string // takes the place of store.redis.url; "" leaves it
}

// loaded is a configuration that holds, and what is to be said about it.
type loaded struct {
	text     []byte // of the file
	config   *config.Config
	warnings []config.Problem
}

// read returns the text of the file.
func (s source) read() ([]byte, error) {
	text, err := os.ReadFile(s.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file", s.file)
	case err != nil:
		return nil, err
	case len(bytes.TrimSpace(text)) == 0:
		return nil, fmt.Errorf("%s: the file is empty", s.file)
	}
	return text, nil
}

// parse makes a configuration of the file's text. The error names every problem, one a line.
func (s source) parse(text []byte) (loaded, error) {
	var sets config.AddressSets // nil is the built-in ones
	if s.addressSets != "" {
		var err error
		if sets, err = config.ReadSets(s.addressSets); err != nil {
			return loaded{}, err
		}
	}
	c, warnings, err := config.Parse(s.file, text, sets)
	if err != nil {
		return loaded{}, err
	}
	if s.redisURL != "" {
		if err := c.UseRedis(s.redisURL); err != nil {
			return loaded{}, fmt.Errorf("--redis-url: %w", err)
		}
	}
	return loaded{text, c, warnings}, nil
}

// load reads and parses.
func (s source) load() (loaded, error) {
	text, err := s.read()
	if err != nil {
		return loaded{}, err
	}
	return s.parse(text)
}
