package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// historyOptions are the flags of "lockstep history".
type historyOptions struct {
	kube   kubeOptions
	scope  scopeOptions
	output outputOptions
}

func newHistory(env Environment) *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "List the revisions of a workload: what changed, and who changed it",
		Long: `List the revisions of a workload: what changed, and who changed it.

CHANGED compares the pod template of each revision with the previous one: images, the digests of
ConfigMaps and Secrets (in the annotation lockstep.dev/inputs), a restart by kubectl, and other
fields. If a revision becomes current again, for example after an undo, it gets one line for each
time.

BY of the current revision is the program that changed the template, if the workload's managed
fields prove that it made all changes. Kubernetes doesn't keep the authors of earlier revisions: BY
is Lockstep if new digests, which only Lockstep writes, are the only change, and else "not known".
Digests that an earlier revision showed together aren't new: if all sources go back to their earlier
content, the rollout looks like an undo, and BY is "not known" as soon as it isn't the current one.
AGE is "-" if it isn't known when the revision became current.

OUTCOME, with -o wide, is the state of the current revision's rollout: rolling, healthy, failed,
paused, by hand, or unknown if the workload's status doesn't show it.

The API server keeps events for an hour by default; -o wide adds those of other programs. The
command needs permission to read the workload. Without permission to list its revisions or events,
it reports that and shows the rest.`,
		Example: `  lockstep history deployment/web -n shop
  lockstep history sts/db -o wide
  lockstep history rollout/web -o json`,
		Args:              oneWorkload,
		ValidArgsFunction: completeWorkload(&o.kube, &o.scope),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], env)
		},
	}
	o.kube.bindUser(cmd.Flags())
	o.scope.bindOne(cmd.Flags())
	o.output.bind(cmd)
	return cmd
}

func (o *historyOptions) run(ctx context.Context, name string, env Environment) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	within, err := o.scope.scope(&o.kube)
	if err != nil {
		return err
	}
	kind, at, err := workloadNamed(name, within.Namespace, o.scope.kinds)
	if err != nil {
		return usageError{err}
	}
	c, err := o.kube.client()
	if err != nil {
		return err
	}
	reader := &ask.Reader{Client: c}
	h, err := reader.History(ctx, kind, at)
	if err != nil {
		return notFound(ctx, c, workloadTarget(kind, at), err)
	}
	revisions := listedOf(h.Revisions, func(r ask.Revision) listed { return listed{at.Namespace, revisionKind(kind) + "/" + r.Name} })
	return o.output.list(env.Stdout, h, revisions, func(to io.Writer) error { return printHistory(to, h, env.Now(), o.output.isWide()) })
}

// revisionKind is the kind of object in which a workload's controller keeps revisions, as kubectl calls
// it.
func revisionKind(kind kube.Kind) string {
	if kind.Kind == kube.Deployment().Kind || kind.Kind == kube.Rollout().Kind {
		return "replicaset"
	}
	return "controllerrevision"
}

// printHistory writes the history for users.
func printHistory(to io.Writer, h ask.History, now time.Time, wide bool) error {
	var err error
	if len(h.Revisions) > 0 {
		err = printRevisions(to, h.Revisions, now, wide)
	}
	for _, note := range h.Notes {
		err = errors.Join(err, say(to, "%s", note))
	}
	return errors.Join(err, printEvents(to, h, now, wide))
}

func printRevisions(to io.Writer, all []ask.Revision, now time.Time, wide bool) error {
	table := commandline.NewColumns(to, 3)
	columns := []string{"REVISION", "AGE", "PODS", "CHANGED", "BY"}
	if wide {
		columns = append(columns, "OUTCOME", "NAME", "INPUTS")
	}
	table.Row(columns...)
	for _, r := range all {
		number := strconv.FormatInt(r.Number, 10)
		if r.Current {
			number += " current"
		}
		cells := []string{number, "-", "-", r.ChangedWords(), r.By}
		if r.Started != nil {
			cells[1] = duration.HumanDuration(now.Sub(*r.Started))
		}
		if r.Pods != nil {
			cells[2] = strconv.Itoa(*r.Pods)
		}
		if wide {
			cells = append(cells, dashed(r.Outcome), r.Name, dashed(revisionInputs(r)))
		}
		table.Row(cells...)
	}
	return table.End()
}

func revisionInputs(r ask.Revision) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r.Inputs)) {
		parts = append(parts, name+" "+r.Inputs[name])
	}
	return strings.Join(parts, ", ")
}

func dashed(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// printEvents writes Lockstep's events, or those of all components.
func printEvents(to io.Writer, h ask.History, now time.Time, wide bool) error {
	var events []ask.Event
	for _, e := range h.Events {
		if wide || e.IsOurs() {
			events = append(events, e)
		}
	}
	if len(events) == 0 {
		return nil
	}
	if len(h.Revisions)+len(h.Notes) > 0 {
		fmt.Fprintln(to)
	}
	table := commandline.NewColumns(to, 3)
	table.Row("AGE", "REASON", "BY", "EVENT")
	for _, e := range events {
		table.Row(duration.HumanDuration(now.Sub(e.At)), e.Reason, dashed(e.By), e.Note)
	}
	return table.End()
}
