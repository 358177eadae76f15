package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ratelimitd/ratelimitd/internal/config"
)

func checkCommand() *cobra.Command {
	var addressSets string
	var strict bool
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Say whether configuration files are right",
		Long: `Check reads configuration files as serve would, without starting anything.

It prints every problem as file:line:column, what it is and what was wanted, and exits
with 1 if there is any. It warns of what is allowed but seldom meant. For a file that
is right it prints the request headers that the rules read, as allowed_headers for
Envoy's ext_authz filter: Envoy then sends those and no others; and the initial_metadata
that client_ip: {from: envoy} needs. For a Redis Cluster it says which rules cost more
than one trip.`,
		Example: `  ratelimitd check config.yaml
  ratelimitd check --strict rules/*.yaml   # warnings count as problems`,
		Args: func(_ *cobra.Command, files []string) error {
			if len(files) == 0 {
				return errors.New("check: at least one FILE is wanted")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			right := true
			for _, file := range files {
				from := source{file: file, addressSets: addressSets}
				right = checkFile(from, strict, cmd.OutOrStdout(), cmd.ErrOrStderr()) && right
			}
			if !right {
				return errReported
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 1 on warnings too")
	addAddressSets(cmd, &addressSets)
	return cmd
}

// checkFile says what there is to say about one file and reports whether it is right.
func checkFile(from source, strict bool, stdout, stderr io.Writer) bool {
	l, err := from.load()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return false
	}
	for _, w := range l.warnings {
		fmt.Fprintf(stderr, "%s (warning)\n", w)
	}
	if strict && len(l.warnings) > 0 {
		return false
	}
	fmt.Fprintf(stdout, "%s: ok, %s\n", from.file, count(len(l.config.Rules), "rule"))
	printSlots(stdout, l.config.SlotGroups())
	set := l.config.RuleSet()
	printAllowedHeaders(stdout, set.Headers())
	if set.Reads().EnvoyClient {
		fmt.Fprint(stdout, envoyClient)
	}
	return true
}

// mostNames is how many rules a line names.
const mostNames = 10

// printSlots says which rules cost a Redis Cluster more than one trip.
func printSlots(w io.Writer, groups []config.SlotGroup) {
	if groups == nil {
		return
	}
	fmt.Fprintln(w, "# A request costs the cluster one trip for the question and one for each slot, when rules of several slots apply to it:")
	for _, g := range groups {
		slot := "a slot by " + g.By
		if g.By == "" {
			slot = "each its own slot"
		}
		names, more := g.Rules, ""
		if n := len(names) - mostNames; n > 1 {
			names, more = names[:mostNames], fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(w, "#   %s: %s%s\n", slot, strings.Join(names, ", "), more)
	}
}

// printAllowedHeaders prints header names as a field of Envoy's ext_authz filter.
func printAllowedHeaders(w io.Writer, names []string) {
	fmt.Fprintln(w, "# The request headers that the rules read, for Envoy's ext_authz filter:\nallowed_headers:\n  patterns:")
	for _, name := range names {
		fmt.Fprintf(w, "  - exact: %s\n", name)
	}
}

// envoyClient is what Envoy has to be told for `client_ip: {from: envoy}`.
const envoyClient = `# The client's address, as client_ip reads it, for the grpc_service of that filter:
initial_metadata:
- { key: x-ratelimitd-client, value: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%" }
`

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
