// Command node is the small program around processes and the real node of the lab.
// The lab runs it, not users, in one of these roles:
//
//	inside    first process of the node's own namespaces: shields the host, makes
//	          the bridge, runs containerd and kubelet, and ends all of them when
//	          it ends
//	gateway   on the host: connects the API server's port and the kubelet's port with
//	          the node, through sockets in the control plane's directory
//	guard     on the host: waits for the end of another process, however it ends,
//	          and removes its leftovers
//	pause     in every pod: holds its namespaces
//	show      in test pods: prints an environment variable and a file whenever
//	          they change
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "node is run by the lab: go run ./lab up --with node")
		os.Exit(2)
	}
	roles := map[string]func(args []string) error{
		"inside": inside, "run": run, "gateway": gateway, "pause": pause, "show": show,
		"guard": func([]string) error { return guard(os.Stdin) },
	}
	role, ok := roles[os.Args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "unknown role %q\n", os.Args[1])
		os.Exit(2)
	}
	if err := role(os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "node %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
