package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// statusOptions are the flags of "lockstep status".
type statusOptions struct {
	kube         kubeOptions
	scope        scopeOptions
	output       outputOptions
	installation installationOptions
	watch        bool
	// empty is the message for an empty list.
	empty string
}

func newStatus(env Environment) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the followed workloads, those that are not in step first",
		Long: `List the followed workloads, with the delivered and the current versions of their inputs, and
what they wait for. Those that are not in step come first.

STATE is the reason of the controller's last decision, as in its events and log. The command reads
it from the controller's record. Without that permission, it uses the newest event of each
workload. If the flags of the controller exclude a workload, STATE is NotWatched, KindOff,
ReloadOff or ImagesOff. "lockstep explain" shows more about one workload.`,
		Example: `  lockstep status -n shop
  lockstep status -A -l team=web -o wide
  lockstep status -A -w`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.installation.namespace = controllerNamespace(o.installation.namespace)
			return o.run(cmd.Context(), env)
		},
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.scope.bindMany(fs)
	o.output.bind(cmd)
	o.installation.bind(fs)
	fs.BoolVarP(&o.watch, "watch", "w", false, "keep running, and print a workload again after each new decision of the controller")
	return cmd
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
	o.empty = within.NoWorkload()
	reader := o.installation.reader(c, within.kinds, env)
	if !o.watch {
		answer, err := o.status(ctx, reader, within)
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
		answer, err := o.status(ctx, reader, within)
		if err != nil {
			return err
		}
		first, isOther := before == nil, !reflect.DeepEqual(controller, answer.Controller)
		areOther := !reflect.DeepEqual(stops, answer.Stops)
		changed, now := changedRows(before, answer.Workloads)
		before, controller, stops, answer.Workloads = now, answer.Controller, answer.Stops, changed
		if !first && isOther && o.output.isForUsers() {
			_ = say(env.Stderr, "controller: %s", controller.Words(env.Now()))
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

// status asks for the state of the workloads.
func (o *statusOptions) status(ctx context.Context, reader *ask.Reader, within scope) (ask.Status, error) {
	answer, err := reader.Status(ctx, within.Scope)
	answer.Controller = advised(answer.Controller)
	return answer, err
}

func (o *statusOptions) print(env Environment, answer ask.Status, whole bool) error {
	workloads := listedOf(answer.Workloads, func(s ask.Summary) listed { return listed{s.Namespace, s.Workload} })
	return o.output.list(env.Stdout, answer, workloads, func(to io.Writer) error {
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
			_, err := fmt.Fprintln(env.Stderr, o.empty)
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

// stateColour is red for states that a user has to end, and yellow for those that end by
// themselves.
func stateColour(s ask.Report) string {
	switch group := s.Group(); {
	case group == ask.InStep, s.Reason == ask.NotOnRecord:
		return ""
	case group == ask.Waiting:
		return colourWaits
	}
	return colourStuck
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
		cells := []string{r.Workload, r.State.Reason, ask.Age(r.State.Since, now), dashed(o.inputs(r)), dashed(r.State.Ends)}
		if o.output.isWide() {
			cells = append(cells, ask.Until(r.State.Next, now), r.State.From, dashed(r.State.Message))
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
	return say(to, "controller: %s", c.Words(now))
}
