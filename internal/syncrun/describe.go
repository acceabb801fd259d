package syncrun

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/feature/podsync/application"
)

// Step is one thing that an agent will do.
type Step struct{ Stage, What string }

// Describe says in order what an agent with this configuration watches, writes,
// runs and asks. It touches nothing.
func (c Config) Describe() []Step {
	c = c.complete()
	var steps []Step
	for _, s := range c.Sync.Sources {
		steps = append(steps, Step{"watch", s.Name + c.sourceNote(s)})
	}
	steps = append(steps, c.describeFiles()...)
	if len(c.Child.Args) > 0 {
		steps = append(steps, Step{"start", strings.Join(c.Child.Args, " ") + ", after the first set"})
	}
	if c.Sync.Once {
		return append(steps, Step{"end", "after the first set; the application is neither told nor asked"})
	}
	steps = append(steps, c.describeApplication()...)
	if c.HealthAddr != "" {
		steps = append(steps, Step{"serve", "/healthz, /readyz, /startupz and /metrics on " + c.HealthAddr})
	}
	return steps
}

func (c Config) sourceNote(s podsync.Source) string {
	switch {
	case !s.Named:
		return ""
	case c.Sync.WaitForSources:
		return ", which is waited for"
	default:
		return ", which has to exist"
	}
}

func (c Config) describeFiles() []Step {
	quiet := Step{"wait", fmt.Sprintf("for %s without a change, at most %s", c.Sync.Timing.Quiet, c.Sync.Timing.MaxWait)}
	check := Step{"check", "nothing"}
	if c.App.Check != "" {
		check.What = fmt.Sprintf("with %s, within %s", application.Command(c.App.Check, true), c.App.CheckTimeout)
	}
	if c.Sync.ReadOnly {
		return []Step{quiet, check, {"write", "nothing: the files are where the application reads them"}}
	}
	return []Step{
		quiet,
		{"stage", "the whole set beside the one in place"},
		check,
		{"write", fmt.Sprintf("%s, layout %s, files %#o, directories %#o", c.Volume.Root, c.Volume.Layout, uint32(c.Volume.FileMode), uint32(c.Volume.DirMode))},
	}
}

func (c Config) describeApplication() []Step {
	h := c.http()
	var steps []Step
	for _, spec := range c.App.Notify {
		steps = append(steps, Step{"tell", h.Describe(spec, false, true)})
	}
	if len(c.App.Notify) == 0 {
		steps = append(steps, Step{"tell", "nobody"})
	}
	if c.App.Confirm != "" {
		steps = append(steps, Step{"ask", h.Describe(c.App.Confirm, true, true) + ", for " + c.App.ConfirmTimeout.String()})
	}
	return append(steps, Step{"failure", c.describeFailure()})
}

func (c Config) describeFailure() string {
	t := c.Sync.Timing
	then := "health is red"
	if t.RollBack {
		then = "the set before is put back"
	}
	return fmt.Sprintf("again after %s, growing to %s; after %d failures %s", t.Retry, t.MaxRetry.Round(time.Millisecond), t.MaxFailures, then)
}

// Summary is the same for one line of a log: names and values in turns. Of
// commands it shows the program only.
func (c Config) Summary() []any {
	c = c.complete()
	var sources, tell []string
	for _, s := range c.Sync.Sources {
		sources = append(sources, s.Name)
	}
	h := c.http()
	for _, spec := range c.App.Notify {
		tell = append(tell, h.Describe(spec, false, false))
	}
	var all []any
	add := func(name, value string) {
		if value != "" {
			all = append(all, name, value)
		}
	}
	add("sources", strings.Join(sources, ", "))
	add("root", c.Volume.Root)
	add("check", application.Command(c.App.Check, false))
	add("tell", strings.Join(tell, "; "))
	if c.App.Confirm != "" {
		add("ask", h.Describe(c.App.Confirm, true, false))
	}
	if len(c.Child.Args) > 0 {
		add("child", c.Child.Args[0])
	}
	return all
}
