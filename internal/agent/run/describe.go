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
		return append(steps, Step{"end", "after the first set, without notifying the application"})
	}
	steps = append(steps, c.describeApplication()...)
	if c.Health.Value != "" {
		steps = append(steps, Step{"serve", "/healthz, /readyz, /startupz and /metrics on " + c.Health.Value})
	}
	return steps
}

func (c Config) sourceNote(s podsync.Source) string {
	switch {
	case !s.Named:
		return ""
	case c.Sync.WaitForSources:
		return ", waiting until it exists"
	default:
		return ", which must exist"
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
	add("watch", c.Sync.Stall != d.Sync.Stall, "unhealthy after %s of silence", c.Sync.Stall)
	add("watch", c.Rescan != d.Rescan, "each directory every %s, even without a change event", c.Rescan)
	add("watch", c.Poll != d.Poll, "each directory every %s when the node has no inotify watches left", c.Poll)
	add("deleted", c.Sync.OnDelete == podsync.DeleteKeeps, "keep the object's files")
	add("deleted", c.Sync.OnDelete == podsync.DeleteRemoves, "remove the object's files")
	r := c.Sync.Rules
	add("files", len(r.Include) > 0, "only keys that match %s", strings.Join(r.Include, " or "))
	add("files", len(r.Exclude) > 0, "no keys that match %s", strings.Join(r.Exclude, " or "))
	for _, item := range r.Items {
		add("files", item.Object == "", "key %s as %s", item.Key, item.Path)
		add("files", item.Object != "", "key %s of %s as %s", item.Key, item.Object, item.Path)
	}
	add("files", r.Shared, "when namespaces contain the same file, the one from the namespace that had it first")
	add("files", r.Separator != "", "%s in a key becomes a slash", r.Separator)
	add("files", c.SubdirAnnotation != "", "below the directory in an object's annotation %s", c.SubdirAnnotation)
	add("files", r.Collision == filemap.Prefix, "with the object's namespace, kind and name as a prefix")
	add("files", r.Collision == filemap.FirstWins, "when objects of a namespace contain the same file, the one from the first object by name")
	add("files", r.MaxBytes != d.Sync.Rules.MaxBytes && r.MaxBytes > 0, "at most %s in total", filemap.Bytes(r.MaxBytes))
	add("files", r.Share > 0, "at most %s from one namespace", filemap.Bytes(r.Share))
	add("files", r.MaxBytes == 0, "of any size")
	return steps
}

func (c Config) describeFiles() []Step {
	check := Step{"check", "nothing"}
	if c.App.Check != "" {
		check.What = fmt.Sprintf("with %s, within %s", application.Command(c.App.Check, true), c.App.CheckTimeout)
	}
	if c.Sync.ReadOnly {
		return []Step{c.describeWait(), check, {"write", "nothing: the application reads the files where they are"}}
	}
	v := c.Volume
	write := []string{fmt.Sprintf("%s, layout %s, files %#o, directories %#o", v.Root, v.Layout, uint32(v.FileMode), uint32(v.DirMode))}
	for _, note := range []struct {
		said bool
		text string
	}{
		{v.UID >= 0, fmt.Sprintf("owner %d", v.UID)},
		{v.GID >= 0, fmt.Sprintf("group %d", v.GID)},
		{v.Overwrite, "replacing files that other programs wrote"},
		{v.Durable, "synced to disk"},
		{v.Grace != Default().Volume.Grace, fmt.Sprintf("a replaced set stays for %s", v.Grace)},
	} {
		if note.said {
			write = append(write, note.text)
		}
	}
	return []Step{c.describeWait(), {"stage", "the complete set next to the current one"}, check, {"write", strings.Join(write, ", ")}}
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
		steps = append(steps, Step{"notify", "for the first set too, each time the agent starts"})
	case podsync.NotifyNever:
		steps = append(steps, Step{"notify", "not for the first set"})
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
	text := fmt.Sprintf("retry after %s, growing to %s; after %s %s", t.Retry, t.MaxRetry.Round(time.Millisecond), failures, then)
	if t.StartGrace != Default().Sync.Timing.StartGrace {
		text += fmt.Sprintf("; an application that can't be reached counts as starting for %s", t.StartGrace)
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
