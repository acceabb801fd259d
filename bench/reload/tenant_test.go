package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestControlComesFirst: the name of an attack stands for its control run, too.
func TestControlComesFirst(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"--scenario", "tenant/registry"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range o.scenarios {
		names = append(names, s.name)
	}
	if diff := cmp.Diff([]string{"tenant/registry/control", "tenant/registry"}, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestJudgedByTheControlRun(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reason   string
		scenario string
		slowest  float64
		faults   int
	}{
		{"a second later is allowed", "tenant/x", 6.1, 0},
		{"more than a second later", "tenant/x", 6.2, 1},
		{"no control run", "tenant/y", 60, 0},
	}
	for _, c := range cases {
		r := report{}
		r.add(result{Scenario: "tenant/x/control", Program: "ours", loadCost: loadCost{SlowestSeconds: 5.1}})
		r.add(result{Scenario: "tenant/x/control", Program: "theirs", loadCost: loadCost{SlowestSeconds: 50}})
		got := r.add(result{Scenario: c.scenario, Program: "ours", loadCost: loadCost{SlowestSeconds: c.slowest}})
		if len(got.Faults) != c.faults {
			t.Errorf("%s: got %q, want %d faults", c.reason, got.Faults, c.faults)
		}
	}
}

// TestAttacks: patterns match what they claim to, a control run has no key of Lockstep, and
// every placeholder is known.
func TestAttacks(t *testing.T) {
	t.Parallel()
	p := &plane{registry: &endlessRegistry{address: "registry"}, webhook: "webhook", dir: "dir"}
	for _, a := range attacks() {
		g := &greedy{attack: a, plane: p}
		for key, value := range g.annotations(a.onApps) {
			if strings.HasPrefix(key, settings.Prefix) || strings.HasPrefix(key, settings.ImagePrefix) || strings.Contains(value, "{") {
				t.Errorf("%s: the control run has %s: %.40s", a.name, key, value)
			}
		}
		if flags := p.places().Replace(a.flags); strings.Contains(flags, "{") {
			t.Errorf("%s: flags %s", a.name, flags)
		}
		if strings.Contains(a.about, "match every") {
			matchesAll(t, g)
		}
	}
}

func matchesAll(t *testing.T, g *greedy) {
	t.Helper()
	elements := strings.Split(g.onApps[settings.Reload], ",")
	if len(elements) != settings.MaxPatterns {
		t.Errorf("%s: %d patterns, want %d", g.name, len(elements), settings.MaxPatterns)
	}
	last := elements[len(elements)-1]
	if letters := strings.Count(last, "a") - 1; letters > g.letters { // Its kind has an a as well.
		t.Errorf("%s: a pattern wants %d letters, and names have %d", g.name, letters, g.letters)
	}
}

func TestEndlessRegistry(t *testing.T) {
	t.Parallel()
	r, err := startEndlessRegistry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.address+"/v2/endless/tags/list?last=7", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var page struct{ Tags []string }
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	if len(page.Tags) != 1 || len(page.Tags[0]) < tagBytes || !strings.HasPrefix(page.Tags[0], "1.7.0-a") {
		t.Errorf("%d tags", len(page.Tags))
	}
	if link := response.Header.Get("Link"); !strings.Contains(link, "last=8") {
		t.Errorf("the next page is %s", link)
	}
}

func TestWhileBusy(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	until := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	fails := func(context.Context) error { return broken }
	fine := func(context.Context) error { return nil }
	cases := []struct {
		reason    string
		other, do func(context.Context) error
		want      error
	}{
		{"the others end with it", until, fine, nil},
		{"it fails", until, fails, broken},
		{"another fails and ends it", fails, until, broken},
	}
	for _, c := range cases {
		if err := whileBusy(t.Context(), []func(context.Context) error{c.other}, c.do); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.reason, err, c.want)
		}
	}
}
