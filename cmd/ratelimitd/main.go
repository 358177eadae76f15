// Command ratelimitd is a rate-limit daemon beside Envoy: it answers Envoy's external authorization checks from the rules
// of one YAML file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // a host without the time zone database, such as a container from scratch, knows every zone too

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run runs one command line and returns the exit code. The end of ctx stops a daemon as SIGTERM does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case !errors.Is(err, errReported):
		fmt.Fprintln(stderr, "ratelimitd:", err)
	}
	return 1
}

// errReported ends a command whose errors are already on stderr.
var errReported = errors.New("reported")

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "ratelimitd",
		Short: "A rate-limit daemon beside Envoy",
		Long: `ratelimitd decides for Envoy which requests may pass. For each request Envoy asks it
over gRPC (the ext_authz filter); it matches the request against the rules of one
YAML file, spends from the buckets those rules name, in Redis or in its own memory,
and answers: allowed, or 429 with a Retry-After that holds.`,
		Example: `  ratelimitd check config.yaml            # is the file right?
  ratelimitd serve --config config.yaml   # run; edits of the file take effect by themselves`,
		Version:       buildText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(serveCommand(), checkCommand(), versionCommand())
	return root
}

// addAddressSets adds the flag that serve and check share.
func addAddressSets(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "address-sets", "", "folder `DIR` of NAME.txt files: named address ranges, beside or in place of the built-in ones")
	_ = cmd.MarkFlagDirname("address-sets")
}
