package internal_test

import (
	"go/ast"
	"slices"
	"testing"
)

// TestClientsReadDates: Retry-After may be a date, which the library of the API server's clients doesn't read. A file that
// makes such a client wraps it with retryafter.InSeconds, or gets a configuration that is wrapped.
func TestClientsReadDates(t *testing.T) {
	t.Parallel()
	constructors := []string{"client.New", "client.NewWithWatch", "rest.HTTPClientFor", "ctrl.NewManager"}
	wrapped := map[string]string{
		"adapter/access/raw.go": "the command line's configuration",
		"cli/completion.go":     "kubeOptions.config",
		"cli/doctor.go":         "kubeOptions.config",
		"server/identity.go":    "server.Run wraps its configuration",
	}
	clients, wraps := map[string]bool{}, map[string]bool{}
	eachNode(t, []string{"adapter", "feature", "run", "dropin", "cli", "ui", "server", "agent"}, func(path string, node ast.Node) {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return
		}
		from, ok := selector.X.(*ast.Ident)
		if !ok {
			return
		}
		name := from.Name + "." + selector.Sel.Name
		clients[path] = clients[path] || slices.Contains(constructors, name) || selector.Sel.Name == "NewForConfig"
		wraps[path] = wraps[path] || name == "retryafter.InSeconds"
	})
	for path, is := range clients {
		if is && !wraps[path] && wrapped[path] == "" {
			t.Errorf("internal/%s makes a client that doesn't read a date in Retry-After", path)
		}
	}
	for path := range wrapped {
		if !clients[path] {
			t.Errorf("internal/%s makes no client any more", path)
		}
	}
}
