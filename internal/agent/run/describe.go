package run

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync/application"
)

// Step is one step of an agent.
type Step struct{ Stage, What string }

// Describe lists in order what an agent with this configuration watches, writes, runs and
// queries. It has no side effects.
func (c Config) Describe() []Step {
	c = c.complete()
	var steps []Step
	for _, s := range c.Sync.Sources {
		steps = append(steps, Step{"watch", s.Name + c.sourceNote(s)})
	}
	steps = append(steps, c.describeSources()...)
	steps = append(steps, c.describeFiles()...)
	if len(c.Child.Args) > 0 {
		steps = append(steps, Step{"start", strings.Join(c.Child.Args, " ") + ", after the first set" + c.stopNote()})
	}
	if c.Sync.Once {
		return append(steps, Step{"end", "after the first set; the application is neither notified nor queried"})
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

// describeSources describes settings of the sources that differ from the defaults, and how
// keys become files.
func (c Config) describeSources() []Step {
	d := Default()
	var steps []Step
	add := func(stage string, said bool, format string, values ...any) {
		if said {
			steps = append(steps, Step{stage, fmt.Sprintf(format, values...)})
		}
	}
	add("watch", c.Kube.Kubeconfig != "" && len(c.Selectors) > 0, "with the kubeconfig %s", c.Kube.Kubeconfig)
	add("watch", c.Kube.Context != "" && len(c.Selectors) > 0, "in the context %s", c.Kube.Context)
	add("watch", c.Sync.Stall != d.Sync.Stall, "unhealthy after %s without a sign of life", c.Sync.Stall)
	add("watch", c.Rescan != d.Rescan, "each directory every %s, although no event came", c.Rescan)
	add("watch", c.Poll != d.Poll, "each directory every %s where the node has no inotify left", c.Poll)
	add("deleted", c.Sync.OnDelete == podsync.DeleteKeeps, "objects keep their files")
	add("deleted", c.Sync.OnDelete == podsync.DeleteRemoves, "objects take their files with them")
	r := c.Sync.Rules
	add("take", len(r.Include) > 0, "only keys that match %s", strings.Join(r.Include, " or "))
	add("take", len(r.Exclude) > 0, "no keys that match %s", strings.Join(r.Exclude, " or "))
	for _, item := range r.Items {
		add("take", item.Object == "", "key %s as %s", item.Key, item.Path)
		add("take", item.Object != "", "key %s of %s as %s", item.Key, item.Object, item.Path)
	}
	add("take", r.Shared, "a file from the namespace that had it first, where two have the same")
	add("take", r.Separator != "", "%s in a key as a slash", r.Separator)
	add("take", c.SubdirAnnotation != "", "the directory that an object names in its annotation %s", c.SubdirAnnotation)
	add("take", r.Collision == filemap.Prefix, "every file with namespace, kind and name of its object before its name")
	add("take", r.Collision == filemap.FirstWins, "the first object by name where two of a namespace have the same file")
	add("take", r.MaxBytes != d.Sync.Rules.MaxBytes && r.MaxBytes > 0, "at most %s in all", filemap.Bytes(r.MaxBytes))
	add("take", r.Share > 0, "at most %s from one namespace", filemap.Bytes(r.Share))
	add("take", r.MaxBytes == 0, "everything, however large")
	return steps
}

func (c Config) describeFiles() []Step {
	check := Step{"check", "nothing"}
	if c.App.Check != "" {
		check.What = fmt.Sprintf("with %s, within %s", application.Command(c.App.Check, true), c.App.CheckTimeout)
	}
	if c.Sync.ReadOnly {
		return []Step{c.describeWait(), check, {"write", "nothing: the files are where the application reads them"}}
	}
	v := c.Volume
	write := []string{fmt.Sprintf("%s, layout %s, files %#o, directories %#o", v.Root, v.Layout, uint32(v.FileMode), uint32(v.DirMode))}
	for _, note := range []struct {
		said bool
		text string
	}{
		{v.UID >= 0, fmt.Sprintf("owner %d", v.UID)},
		{v.GID >= 0, fmt.Sprintf("group %d", v.GID)},
		{v.Overwrite, "over files of others"},
		{v.Durable, "synced to the disk"},
		{v.Grace != Default().Volume.Grace, fmt.Sprintf("a replaced set stays for %s", v.Grace)},
	} {
		if note.said {
			write = append(write, note.text)
		}
	}
	return []Step{c.describeWait(), {"stage", "the whole set beside the one in place"}, check, {"write", strings.Join(write, ", ")}}
}

func (c Config) describeWait() Step {
	t := c.Sync.Timing
	what := fmt.Sprintf("for %s without a change", t.Quiet)
	if t.MaxWait > 0 {
		what += fmt.Sprintf(", at most %s", t.MaxWait)
	}
	if t.MinInterval > 0 {
		what += fmt.Sprintf(", and until %s after the last reload", t.MinInterval)
	}
	return Step{"wait", what}
}

// stopNote describes how a child is stopped, when that differs from the default.
func (c Config) stopNote() string {
	d := Default().Child
	if c.Child.StopSignal == d.StopSignal && c.Child.Grace == d.Grace {
		return ""
	}
	return fmt.Sprintf("; stopped with %s, killed after %s", unix.SignalName(c.Child.StopSignal), c.Child.Grace)
}

func (c Config) describeApplication() []Step {
	h := c.http()
	var steps []Step
	for _, spec := range c.App.Notify {
		what := h.Describe(spec, false, true)
		if strings.HasPrefix(what, "command ") || strings.HasPrefix(what, "line ") {
			what += fmt.Sprintf(", within %s", c.App.CommandTimeout)
		}
		if c.Child.AnySignal && strings.HasPrefix(what, "signal:") {
			what += ", even if the application doesn't handle it"
		}
		steps = append(steps, Step{"notify", what})
	}
	if len(c.App.Notify) == 0 {
		steps = append(steps, Step{"notify", "nothing"})
	}
	switch c.Sync.InitialNotify {
	case podsync.NotifyAlways:
		steps = append(steps, Step{"notify", "of the first set too, each time the agent starts"})
	case podsync.NotifyNever:
		steps = append(steps, Step{"notify", "not of the first set"})
	case podsync.NotifyIfChanged:
	}
	if c.App.Confirm != "" {
		steps = append(steps, Step{"confirm", h.Describe(c.App.Confirm, true, true) + ", for " + c.App.ConfirmTimeout.String()})
	}
	return append(steps, Step{"failure", c.describeFailure()})
}

func (c Config) describeFailure() string {
	t := c.Sync.Timing
	then := "health is red"
	if t.RollBack {
		then = "the previous set is restored"
	}
	failures := "1 failure"
	if t.MaxFailures != 1 {
		failures = fmt.Sprintf("%d failures", t.MaxFailures)
	}
	text := fmt.Sprintf("again after %s, growing to %s; after %s %s", t.Retry, t.MaxRetry.Round(time.Millisecond), failures, then)
	if t.StartGrace != Default().Sync.Timing.StartGrace {
		text += fmt.Sprintf("; one that cannot be reached counts as starting for %s", t.StartGrace)
	}
	return text
}

// Summary is the same for one log line: alternating names and values. Of commands it shows
// only the program.
func (c Config) Summary() []any {
	c = c.complete()
	var sources, notify []string
	for _, s := range c.Sync.Sources {
		sources = append(sources, s.Name)
	}
	h := c.http()
	for _, spec := range c.App.Notify {
		notify = append(notify, h.Describe(spec, false, false))
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
	add("notify", strings.Join(notify, "; "))
	if c.App.Confirm != "" {
		add("confirm", h.Describe(c.App.Confirm, true, false))
	}
	if len(c.Child.Args) > 0 {
		add("child", c.Child.Args[0])
	}
	return all
}
