// Command standin takes the place of an application in the pods of examples/sync, of Grafana or PostgreSQL,
// under the name of the application: it understands the same command line, ports
// and signals, and says what it does on its standard output. What it does to the
// agent beside it is what a real application does, and can be made to happen.
//
// A line of the configuration that contains "at start" is one that it takes only
// when it starts, as listen addresses are of many programs; a change of it is
// refused while it runs.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	roles := map[string]func(args []string) error{"prometheus": prometheus, "nginx": nginx, "grafana": grafana, "postgres": postgres, "worker": worker}
	name := filepath.Base(os.Args[0])
	role, ok := roles[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "standin: no application is called %q\n", name)
		os.Exit(2)
	}
	if err := role(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// say writes a line that tests wait for.
func say(words ...any) { fmt.Println(words...) }

// describe says what the container is allowed to do, which the manifest asks for
// and only the inside can see.
func describe() {
	root := "read-only"
	if file, err := os.Create("/written"); err == nil {
		_ = file.Close()
		root = "writable"
	}
	say("user", os.Getuid(), "parent", os.Getppid(), "root", root, "capabilities", capabilities())
}

// capabilities are those that the process may use, as the kernel writes them.
func capabilities() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "CapEff:"); found {
			if value = strings.Trim(strings.TrimSpace(value), "0"); value == "" {
				return "none"
			}
			return value
		}
	}
	return "unknown"
}

// linesWith are the lines of a text that contain a part.
func linesWith(text, part string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}
