package configmapattacher_test

import (
	"flag"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/dropin/configmapattacher"
)

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, set := env[name]
		return value, set
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	names := func(list ...string) []input.ID {
		var sources []input.ID
		for _, name := range list {
			sources = append(sources, input.ConfigMap(name))
		}
		return sources
	}
	cases := map[string]struct {
		reason string
		args   string
		env    map[string]string
		want   configmapattacher.Invocation
	}{
		"as in the published Job": {
			reason: "single dashes and values apart",
			args:   "-rollout demo -namespace apps -configmaps cm-1",
			env:    map[string]string{"VERSION": "1.0.1"},
			want:   configmapattacher.Invocation{Rollout: "demo", Namespace: "apps", ConfigMaps: names("cm-1"), InCluster: true, Version: "1.0.1"},
		},
		"double dashes and equal signs": {
			reason: "Go's flag package takes both forms",
			args:   "--rollout=demo --namespace=apps -configmaps=b,a",
			want:   configmapattacher.Invocation{Rollout: "demo", Namespace: "apps", ConfigMaps: names("b", "a"), InCluster: true},
		},
		"spaces, empty elements and repetitions": {
			reason: "a list made by a template has them",
			args:   "-rollout|demo|-namespace|apps|-configmaps| a ,,b,a,",
			want:   configmapattacher.Invocation{Rollout: "demo", Namespace: "apps", ConfigMaps: names("a", "b"), InCluster: true},
		},
		"environment": {
			reason: "an empty VERSION is accepted, and so is a missing one",
			args:   "-rollout demo -namespace apps -configmaps a",
			env:    map[string]string{"VERSION": "", "IS_IN_CLUSTER": "0", "LOG_LEVEL": "Debug", "JOB_NAME": "j"},
			want:   configmapattacher.Invocation{Rollout: "demo", Namespace: "apps", ConfigMaps: names("a"), Level: slog.LevelDebug, JobName: "j"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := configmapattacher.Parse(split(c.args), lookup(c.env), io.Discard)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// split takes arguments apart at "|" where they contain spaces.
func split(args string) []string {
	if strings.Contains(args, "|") {
		return strings.Split(args, "|")
	}
	return strings.Fields(args)
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const all = "-rollout demo -namespace apps -configmaps a"
	cases := map[string]struct {
		args string
		env  map[string]string
		want string
		code int
	}{
		"no rollout":       {args: "-namespace apps -configmaps a", want: "flag -rollout is missing or empty", code: 1},
		"no namespace":     {args: "-rollout demo -configmaps a", want: "flag -namespace is missing or empty", code: 1},
		"no configmaps":    {args: "-rollout|demo|-namespace|apps|-configmaps| , ", want: "flag -configmaps is missing or empty", code: 1},
		"unknown flag":     {args: all + " -timeout 5s", want: "flag provided but not defined: -timeout", code: 2},
		"flag without":     {args: "-rollout", want: "flag needs an argument: -rollout", code: 2},
		"help":             {args: "-h", want: flag.ErrHelp.Error(), code: 0},
		"level":            {args: all, env: map[string]string{"LOG_LEVEL": "loud"}, want: `LOG_LEVEL="loud"`, code: 1},
		"empty level":      {args: all, env: map[string]string{"LOG_LEVEL": ""}, want: `LOG_LEVEL=""`, code: 1},
		"in cluster maybe": {args: all, env: map[string]string{"IS_IN_CLUSTER": "maybe"}, want: `IS_IN_CLUSTER="maybe"`, code: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := configmapattacher.Parse(split(c.args), lookup(c.env), io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) || configmapattacher.ExitCode(err) != c.code {
				t.Errorf("error %v, exit code %d; want %q and %d", err, configmapattacher.ExitCode(err), c.want, c.code)
			}
		})
	}
}

// TestParseRefusesSingleNames: the other names are still attached.
func TestParseRefusesSingleNames(t *testing.T) {
	t.Parallel()
	got, err := configmapattacher.Parse([]string{"-rollout", "r", "-namespace", "n", "-configmaps", "ok,other/cm,No"}, lookup(nil), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Refused) != 2 || !strings.Contains(got.Refused[0].Error(), "same namespace") || len(got.ConfigMaps) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestMissingFlagsAreExplained(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	_, err := configmapattacher.Parse(nil, lookup(nil), &stderr)
	if err == nil || !strings.Contains(stderr.String(), "-rollout") || !strings.Contains(stderr.String(), "-configmaps") {
		t.Errorf("error %v, explained as %q", err, stderr.String())
	}
	stderr.Reset()
	_, err = configmapattacher.Parse([]string{"-rollout", "r", "-namespace", "n"}, lookup(nil), &stderr)
	if err == nil || !strings.HasSuffix(stderr.String(), "\nflag -configmaps is missing or empty\n") {
		t.Errorf("error %v, explained as %q, want the missing flag last", err, stderr.String())
	}
}

func TestLevelNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"trace": "debug", "debug": "debug", "info": "info", "warn": "warning", "warning": "warning",
		"error": "error", "fatal": "fatal", "panic": "fatal",
	} {
		if got := configmapattacher.LevelName(configmapattacher.Levels()[name]); got != want {
			t.Errorf("level %s is written as %s, want %s", name, got, want)
		}
	}
}

// FuzzParse: whatever the list, names are valid, unique and none is lost without
// a word.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a,b", " a , ,a", "x/y", "A", ",", "a\nb", "-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		in, err := configmapattacher.Parse([]string{"-rollout=r", "-namespace=n", "-configmaps=" + list}, lookup(nil), io.Discard)
		if err != nil {
			return
		}
		seen := map[input.ID]bool{}
		for _, s := range in.ConfigMaps {
			if seen[s] || s.Name != strings.TrimSpace(s.Name) || s.Name == "" || strings.ContainsAny(s.Name, "/,") {
				t.Errorf("%q gives the name %q", list, s.Name)
			}
			seen[s] = true
		}
	})
}
