package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in release builds: -ldflags '-X main.version=v1.2.3'.
var version string

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the revision of the source and the Go version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), buildText())
		},
	}
}

func buildText() string {
	release, revision := build()
	return fmt.Sprintf("ratelimitd %s, revision %s, %s", release, revision, runtime.Version())
}

// build returns the release and the revision of the source that the binary was built from, as the linker and the Go
// toolchain stamped them; "unknown" stands for what neither did.
func build() (release, revision string) {
	release, revision = "unknown", "unknown"
	if version != "" {
		release = version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release, revision
	}
	if release == "unknown" && info.Main.Version != "" {
		release = info.Main.Version
	}
	modified := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "-modified"
		}
	}
	return release, revision + modified
}
