package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// statusOptions are the flags of "lockstep status".
type statusOptions struct {
	kube         kubeOptions
	scope        scopeOptions
	output       outputOptions
	installation installationOptions
	watch        bool
}

func newStatus(env Environment) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the workloads that are followed, those that are not in step first",
		Long: `List the workloads that are followed: what they were given, what exists, and what they
wait for. Those that are not in step come first.

It is what the controller has put on record, in ConfigMaps of its own namespace: STATE
is the reason that its events and log have too. Where the arguments of its Deployment
rule a workload out, STATE is NotWatched, KindOff, ReloadOff or ImagesOff. Without the
permission to read the record, STATE is that of the newest event of each workload.
"lockstep explain" says more of one workload.`,
		Example: `  lockstep status -n shop
  lockstep status -A -l team=web -o wide
  lockstep status -A -w`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.installation.namespace = ownNamespace(o.installation.namespace, env.Lookup)
			return o.run(cmd.Context(), env)
		},
	}
	fs := cmd.Flags()
	o.kube.bind(fs)
	o.scope.bindMany(fs)
	o.output.bind(cmd)
	o.installation.bind(fs)
	fs.BoolVarP(&o.watch, "watch", "w", false, "go on, and write a workload again when the controller has decided something else")
	return cmd
}

// statusAnswer is the output of the command.
type statusAnswer struct {
	Controller ask.Controller `json:"controller"`
	// Stops are what an operator stopped.
	Stops     []ask.Stop    `json:"stops,omitempty"`
	Workloads []ask.Summary `json:"workloads"`
	// Notes list what could not be read.
	Notes []string `json:"notes,omitempty"`
}

func (o *statusOptions) run(ctx context.Context, env Environment) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	within, err := o.scope.scope(&o.kube)
	if err != nil {
		return err
	}
	c, err := o.kube.client()
	if err != nil {
		return err
	}
	if !o.watch {
		answer, err := o.ask(ctx, c, env, within)
		if err != nil {
			return err
		}
		return o.print(env, answer, true)
	}
	var (
		before     map[string]ask.Summary
		controller ask.Controller
		stops      []ask.Stop
	)
	return ledger.WhenChanged(ctx, c, o.installation.namespace, func(ctx context.Context) error {
		answer, err := o.ask(ctx, c, env, within)
		if err != nil {
			return err
		}
		first, isOther := before == nil, !reflect.DeepEqual(controller, answer.Controller)
		areOther := !reflect.DeepEqual(stops, answer.Stops)
		changed, now := changedRows(before, answer.Workloads)
		before, controller, stops, answer.Workloads = now, answer.Controller, answer.Stops, changed
		if !first && isOther && o.output.isForUsers() {
			_ = say(env.Stderr, "%s", controllerWords(controller, env.Now()))
		}
		if !first && areOther && o.output.isForUsers() {
			printStops(env.Stderr, stops, env.Now())
		}
		isOther = isOther || areOther
		if !first && len(changed) == 0 && (!isOther || o.output.isForUsers()) {
			return nil
		}
		return o.print(env, answer, first)
	})
}

// changedRows returns the rows that differ from the previous ones, and all of them for the next
// comparison.
func changedRows(before map[string]ask.Summary, rows []ask.Summary) (changed []ask.Summary, now map[string]ask.Summary) {
	now = map[string]ask.Summary{}
	for _, row := range rows {
		name := row.Namespace + "/" + row.Workload
		now[name] = row
		if old, known := before[name]; !known || !reflect.DeepEqual(old, row) {
			changed = append(changed, row)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, exists := now[name]; !exists {
			row := before[name]
			changed = append(changed, ask.Summary{Namespace: row.Namespace, Workload: row.Workload, State: ask.Report{Reason: ask.NotFollowedAnyMore}})
		}
	}
	return changed, now
}

// ask reads the state: one list for each kind, and the record.
func (o *statusOptions) ask(ctx context.Context, c client.Reader, env Environment, within scope) (statusAnswer, error) {
	var (
		answer statusAnswer
		known  ask.Known
		denied error
		listed bool
	)
	heard, stored, err := o.installation.heard(ctx, c, env, within.namespace)
	if err != nil {
		return answer, err
	}
	known.Serves = heard.Serves
	for _, kind := range allOf(within.kinds, heard.Serves.Kinds) {
		found, err := cluster.Headers(ctx, c, kind, within.namespace, within.selector)
		switch {
		case apierrors.IsForbidden(err):
			denied = errors.Join(denied, err)
			answer.Notes = append(answer.Notes, err.Error())
		case err != nil:
			return answer, err
		}
		listed = listed || found != nil
		known.Workloads = append(known.Workloads, found...)
	}
	if !listed && denied != nil {
		return answer, denied
	}
	if heard.RecordProblem == nil {
		known.Entries, known.Changes = stored.Entries, stored.Changes
		unwritable, err := o.installation.unwritable(ctx, c, stored)
		if err != nil {
			return answer, err
		}
		for _, t := range unwritable {
			answer.Notes = append(answer.Notes, fmt.Sprintf("%s %s: %s", t.Reason, t.About, t.Note))
		}
	} else {
		answer.Notes = append(answer.Notes, "the record is "+ask.NotVisible+", so this is what events say: "+heard.RecordProblem.Error())
	}
	if known.NeedsEvents() {
		if known.Events, err = announce.ReportedIn(ctx, c, within.namespace); err != nil {
			answer.Notes = append(answer.Notes, err.Error())
		}
	}
	answer.Controller, answer.Workloads = o.installation.controller(heard, env), ask.StatusOf(known)
	answer.Stops = heard.StopsIn(within.namespace)
	return answer, unlessForbidden(err)
}

// allOf are the kinds, plus those further kinds that aren't among them.
func allOf(kinds, further []kube.Kind) []kube.Kind {
	all := slices.Clone(kinds)
	for _, kind := range further {
		if !kube.HasKind(all, kind.GroupKind()) {
			all = append(all, kind)
		}
	}
	return all
}

func (o *statusOptions) print(env Environment, answer statusAnswer, whole bool) error {
	return o.output.write(env.Stdout, answer, func(to io.Writer) error {
		if whole {
			if err := printController(env.Stderr, answer.Controller, env.Now()); err != nil {
				return err
			}
			printStops(env.Stderr, answer.Stops, env.Now())
			for _, note := range answer.Notes {
				_ = say(env.Stderr, "%s", note)
			}
		}
		if len(answer.Workloads) == 0 {
			_, err := fmt.Fprintln(env.Stderr, o.nothing())
			return err
		}
		var text bytes.Buffer
		if err := o.table(&text, answer.Workloads, env.Now(), whole); err != nil {
			return err
		}
		return paint(to, text.Bytes(), func(line int) string {
			if whole {
				line--
			}
			if line < 0 || line >= len(answer.Workloads) || !usesColour(env) {
				return ""
			}
			return stateColour(answer.Workloads[line].State)
		})
	})
}

// nothing is the message for an empty list.
func (o *statusOptions) nothing() string {
	switch {
	case o.scope.selector != "":
		return "no workload with these labels is followed"
	case o.scope.all:
		return "no workload is followed, and none asks to be (lockstep.dev/reload: auto)"
	}
	return "no workload is followed in this namespace, and none asks to be (lockstep.dev/reload: auto); -A looks in all namespaces"
}

// stateColour is red for states that a user has to end, and yellow for those that end by
// themselves.
func stateColour(s ask.Report) string {
	if s.IsSettled() || s.Reason == ask.NotOnRecord {
		return ""
	}
	switch input.Reason(s.Reason) {
	case input.QuietWindow, input.Evicting, input.GenerationNotObserved, input.Changed,
		input.AwaitsTurn, input.AwaitsWindow, input.AwaitsWorkload, input.Damped:
		return colourWaits
	default:
		return colourStuck
	}
}

// fewInputs is how many inputs a row names; more are counted, except with -o wide.
const fewInputs = 2

func (o *statusOptions) table(to io.Writer, rows []ask.Summary, now time.Time, header bool) error {
	table := commandline.NewColumns(to, 3)
	columns := []string{"WORKLOAD", "STATE", "SINCE", "INPUTS", "WAITS FOR"}
	if o.output.isWide() {
		columns = append(columns, "NEXT LOOK", "FROM", "MESSAGE")
	}
	if o.scope.all {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	if header {
		table.Row(columns...)
	}
	for _, r := range rows {
		cells := []string{r.Workload, r.State.Reason, age(r.State.Since, now), dashed(o.inputs(r)), dashed(r.State.Ends)}
		if o.output.isWide() {
			cells = append(cells, until(r.State.Next, now), r.State.From, dashed(r.State.Message))
		}
		if o.scope.all {
			cells = append([]string{r.Namespace}, cells...)
		}
		table.Row(cells...)
	}
	return table.End()
}

// inputs names those that are not in step first.
func (o *statusOptions) inputs(r ask.Summary) string {
	var behind, inStep []string
	for _, i := range r.Inputs {
		if i.InStep() {
			inStep = append(inStep, i.Input+" "+i.Delivered)
		} else {
			behind = append(behind, i.Input+" "+i.Delivered+" -> "+i.Current)
		}
	}
	all := slices.Concat(behind, inStep)
	if more := len(all) - fewInputs; more > 0 && !o.output.isWide() {
		return strings.Join(all[:fewInputs], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(all, ", ")
}

// printController describes the controller's state, where that matters.
func printController(to io.Writer, c ask.Controller, now time.Time) error {
	if c.State == ask.Running && c.Note == "" {
		return nil
	}
	return say(to, "%s", controllerWords(c, now))
}

func controllerWords(c ask.Controller, now time.Time) string {
	words := "controller: " + c.State
	if c.Since != nil {
		words += " for " + age(c.Since, now) + " (since " + c.Since.UTC().Format(time.RFC3339) + ")"
	}
	if c.Version != "" {
		words += ", version " + c.Version
	}
	if c.Note != "" {
		words += "; " + c.Note
	}
	return words
}

func age(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(*t)))
}

// until is the duration until a time.
func until(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return "in " + duration.HumanDuration(max(0, t.Sub(now)))
}
