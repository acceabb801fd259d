package expofmt_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/agent/core/expofmt"
)

func TestAppend(t *testing.T) {
	got := string(expofmt.Append(nil, expofmt.Metric{
		Name: "x_total", Help: "How often.", Type: expofmt.Counter,
		Samples: []expofmt.Sample{
			{Labels: map[string]string{"stage": "publish", "result": "ok"}, Value: 3},
			{Labels: map[string]string{"stage": `a"b\` + "\n"}, Value: 0.5},
		},
	}, expofmt.Metric{Name: "y", Help: "Now.", Type: expofmt.Gauge, Samples: []expofmt.Sample{{Value: 1}}}))
	want := "# HELP x_total How often.\n# TYPE x_total counter\n" +
		`x_total{result="ok",stage="publish"} 3` + "\n" + `x_total{stage="a\"b\\\n"} 0.5` + "\n" +
		"# HELP y Now.\n# TYPE y gauge\ny 1\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHolds(t *testing.T) {
	const text = "# HELP up x\n# TYPE up gauge\nup 1\nupper 0\nmulti{a=\"1\"} 1\nmulti{a=\"2\"} 2 1700000000\nbroken\n"
	for condition, want := range map[string][2]bool{
		"up == 1": {true, true}, "up==0": {false, true}, "up != 0": {true, true}, "up > 1": {false, true},
		"multi >= 1": {true, true}, "multi < 2": {false, true},
		"none == 1": {false, false}, "broken == 1": {false, false}, "upp == 0": {false, false},
	} {
		c, err := expofmt.ParseCondition(condition)
		if err != nil {
			t.Errorf("%s: %v", condition, err)
			continue
		}
		samples := c.Samples(text)
		holds, found := c.Holds(samples, nil), len(samples) > 0
		if holds != want[0] || found != want[1] {
			t.Errorf("%s: holds %v, found %v, want %v", condition, holds, found, want)
		}
	}
}

// Each sample is compared with its own earlier value; a new one was 0.
func TestHoldsBefore(t *testing.T) {
	c, err := expofmt.ParseCondition("x_total > before")
	if err != nil || c.String() != "> before" {
		t.Fatalf("%s: %v", c, err)
	}
	earlier := c.Samples("x_total{a=\"1\"} 5\nx_total{a=\"2\"} 5\ny 1\n")
	for text, want := range map[string]bool{
		"x_total{a=\"1\"} 6\nx_total{a=\"2\"} 6\n":                     true,
		"x_total{a=\"1\"} 6\nx_total{a=\"2\"} 5\n":                     false,
		"x_total{a=\"1\"} 6\nx_total{a=\"2\"} 6\nx_total{a=\"3\"} 1\n": true,
		"x_total{a=\"1\"} 6\nx_total{a=\"2\"} 6\nx_total{a=\"3\"} 0\n": false,
		"": false,
	} {
		if got := c.Holds(c.Samples(text), earlier); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestHoldsNaN: an application that exports NaN hasn't confirmed anything. As in Prometheus, every comparison with NaN is
// false, except !=. TestHoldsAfterNaN is about an earlier sample that is NaN.
func TestHoldsNaN(t *testing.T) {
	for _, values := range []struct{ reason, now, earlier string }{
		{"the sample is NaN", "NaN", "1"},
		{"the number is NaN", "1", "NaN"},
		{"both are", "NaN", "NaN"},
	} {
		for _, operator := range []string{"==", "!=", ">=", "<=", ">", "<"} {
			for _, against := range []string{values.earlier, "before"} {
				if against == "before" && values.now != "NaN" {
					continue
				}
				c, err := expofmt.ParseCondition("x " + operator + " " + against)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := c.Holds(c.Samples("x "+values.now), c.Samples("x "+values.earlier)), operator == "!="; got != want {
					t.Errorf("%s: %s %s %s is %t, want %t", values.reason, values.now, operator, against, got, want)
				}
			}
		}
	}
}

// TestHoldsAfterNaN: an application that sets its sample with the first reload confirms that reload. With a comparison as in
// Prometheus, it never could.
func TestHoldsAfterNaN(t *testing.T) {
	for text, want := range map[string]bool{"x > before": true, "x != before": true, "x >= before": true, "x == before": false, "x < before": false} {
		c, err := expofmt.ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Holds(c.Samples("x 1795090000"), c.Samples("x NaN")); got != want {
			t.Errorf("%s is %t, want %t", text, got, want)
		}
	}
}

func FuzzParseCondition(f *testing.F) {
	for _, s := range []string{"a==1", "a != -2e3", "a", "==1", "a==x", "a b == 1", "a > before"} {
		f.Add(s, "a 1\n")
	}
	f.Fuzz(func(t *testing.T, s, text string) {
		c, err := expofmt.ParseCondition(s)
		if err != nil {
			return
		}
		if c.Metric == "" || c.Operator == "" {
			t.Errorf("%q became %+v", s, c)
		}
		samples := c.Samples(text)
		if c.Holds(samples, nil) && len(samples) == 0 {
			t.Error("a metric that is not there holds")
		}
		if again := c.Samples(c.Excerpt(samples)); c.Excerpt(again) != c.Excerpt(samples) {
			t.Errorf("%v became %v", samples, again)
		}
	})
}
