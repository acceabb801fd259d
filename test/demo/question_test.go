package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestReaderIsAsked(t *testing.T) {
	cases := map[string]struct {
		reason string
		o      options
		want   string // of the error; empty is a yes
		asked  bool
	}{
		"yes":         {"a yes is a yes", options{terminal: true, in: strings.NewReader("Yes\n")}, "", true},
		"y":           {"so is its first letter", options{terminal: true, in: strings.NewReader(" y \n")}, "", true},
		"no":          {"anything else is a no", options{terminal: true, in: strings.NewReader("yo\n")}, errDeclined.Error(), true},
		"enter":       {"the default is no", options{terminal: true, in: strings.NewReader("\n")}, errDeclined.Error(), true},
		"end":         {"a terminal that hangs up has not agreed", options{terminal: true, in: strings.NewReader("")}, errDeclined.Error(), true},
		"before":      {"who says yes before is not asked", options{yes: true}, "", false},
		"no terminal": {"a script must say yes explicitly", options{in: strings.NewReader("y\n")}, "YES=1", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := c.o.agree(t.Context(), newPrinter(&out, false), "Play?")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", c.reason, err, c.want)
			}
			if asked := strings.Contains(out.String(), "Play? [y/N]"); asked != c.asked {
				t.Errorf("%s: asked %t, want %t", c.reason, asked, c.asked)
			}
		})
	}
}

// TestQuestionEndsWithCtrlC: a terminal on which nothing is typed blocks its reader.
func TestQuestionEndsWithCtrlC(t *testing.T) {
	in, typed := io.Pipe()
	defer typed.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := options{terminal: true, in: in}
	// As who reports it sees it: Ctrl-C is no refusal.
	err := notPlayedError{o.agree(ctx, newPrinter(io.Discard, false), "Play?")}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestOldKubernetesIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"v1.34.0":            "1.34.0",
		"v1.36.1+k3s1":       "1.36.1",
		"v1.35.2-gke.100200": "1.35.2",
		"v1.33.9":            "",
		"v1.9.0":             "",
		"unknown":            "",
	} {
		got, err := checkVersion(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, error %v, want %q", text, got, err, want)
		}
	}
	if _, err := checkVersion("v1.33.9"); err == nil || !strings.Contains(err.Error(), "it is Kubernetes 1.33.9, and Lockstep supports 1.34 and newer: choose another context") {
		t.Errorf("error %v, want both versions and what to do", err)
	}
}

// TestPlanSaysWhatHappensToTheCluster: the canary is the only chapter that uses nodes.
func TestPlanSaysWhatHappensToTheCluster(t *testing.T) {
	const runs, leftOut = "runs three pods", "a canary, is left out: there is no helm in PATH."
	cases := map[string]struct {
		lacks    string
		o        options
		others   []string
		lockstep []string
		has, not string
	}{
		"all":       {has: runs, not: "left out"},
		"left out":  {lacks: "there is no helm in PATH", has: leftOut, not: runs},
		"not asked": {o: options{chapters: "3"}, has: "no node runs them", not: "canary"},
		"removed":   {has: "on failure and on Ctrl-C the demo deletes the namespace", not: "KEEP"},
		"kept":      {o: options{keep: true}, has: "The namespace stays at the end (KEEP)", not: "on failure"},
		"alone":     {has: "lockstep-demo-aaaaa, which it creates", not: "Another demo"},
		"installed": {lockstep: []string{"deployment/lockstep in tools"}, has: "Lockstep is installed here: deployment/lockstep in tools", not: "Another demo"},
		"left over": {others: []string{"lockstep-demo-bbbbb"}, has: "    kubectl --context dev delete namespace lockstep-demo-bbbbb\n", not: "delete namespace lockstep-demo-aaaaa"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			y := &yourCluster{access: access{context: "dev"}, config: &rest.Config{Host: "https://dev"}, namespace: "lockstep-demo-aaaaa", lacks: c.lacks}
			got := y.plan(findings{version: "1.36.1", others: c.others, installed: c.lockstep}, c.o)
			if !strings.Contains(got, c.has) || strings.Contains(got, c.not) {
				t.Errorf("want %q and not %q:\n%s", c.has, c.not, got)
			}
		})
	}
}
