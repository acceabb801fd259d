package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/feature/follow"
)

// explainOptions are the flags of "lockstep explain".
type explainOptions struct {
	kube         kubeOptions
	scope        scopeOptions
	output       outputOptions
	installation installationOptions
	key          string
	quiet        time.Duration
	watch        bool
}

func newExplain(env Environment) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Say why a workload was rolled out, or why it was not",
		Long: `Say where a workload stands: what it depends on, what it was given, what exists, who
changed that, what happens next, or why nothing does and what ends that.

STATE is what the controller decided and has on record, with the reason and message of
its events and log. What the controller has not said is worked out from what you may
read, by the controller's own rules, and marked as an estimate.

A source that you may not read is "not visible to you"; its digest is then the one that
the controller has on record. Digests of Secrets need the installation key as well.`,
		Example: `  lockstep explain deployment/web -n shop
  lockstep explain sts/db -o yaml
  lockstep explain deploy/web -w`,
		Args: oneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.installation.namespace = ownNamespace(o.installation.namespace, env.Lookup)
			return o.run(cmd.Context(), args[0], env)
		},
	}
	fs := cmd.Flags()
	o.kube.bind(fs)
	o.scope.bindOne(fs)
	o.output.bind(cmd)
	o.installation.bind(fs)
	fs.StringVar(&o.key, "key-name", defaultKeyName, "name of the Secret with the key for digests of Secrets")
	fs.DurationVar(&o.quiet, "quiet", 5*time.Second, "the controller's quiet window, for estimates")
	fs.BoolVarP(&o.watch, "watch", "w", false, "go on, and explain again when the controller has decided something else")
	return cmd
}

func (o *explainOptions) run(ctx context.Context, name string, env Environment) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	within, err := o.scope.scope(&o.kube)
	if err != nil {
		return err
	}
	kind, at, err := workloadNamed(name, within.namespace, o.scope.kinds)
	if err != nil {
		return usageError{err}
	}
	c, err := o.kube.watchingClient()
	if err != nil {
		return err
	}
	question := &explaining{options: o, client: c, env: env, kind: kind, at: at}
	if !o.watch {
		answer, err := question.ask(ctx)
		if err != nil {
			return err
		}
		return o.print(env, answer)
	}
	var before *ask.Explanation
	return whenRecordChanges(ctx, c, o.installation.namespace, func(ctx context.Context) error {
		answer, err := question.ask(ctx)
		if err != nil || before != nil && reflect.DeepEqual(*before, answer) {
			return err
		}
		if before != nil && o.output.isForPeople() {
			_, _ = fmt.Fprintln(env.Stdout)
		}
		before = &answer
		return o.print(env, answer)
	})
}

// explaining is one run of the command.
type explaining struct {
	options *explainOptions
	client  client.Client
	env     Environment
	kind    kube.Kind
	at      client.ObjectKey
}

// ask reads all that can be said of the workload. Rights that are missing are told, and no
// error, but for the workload itself.
func (x *explaining) ask(ctx context.Context) (ask.Explanation, error) {
	var s ask.Situation
	heard, stored, err := x.options.installation.heard(ctx, x.client, x.env, x.at.Namespace)
	if err != nil {
		return ask.Explanation{}, err
	}
	s.Controller, s.Readable = ask.ControllerOf(heard, x.env.Now()), heard.RecordProblem == nil
	if !s.Readable {
		s.Unread = append(s.Unread, "the record is "+ask.NotVisible+", so the state is that of the newest event: "+heard.RecordProblem.Error())
	}
	live, err := x.live(ctx, &s)
	if err != nil {
		return ask.Explanation{}, err
	}
	entry, found := stored.Entries[live.Key()]
	if err := x.gather(ctx, &s, live, entry, found); err != nil {
		return ask.Explanation{}, err
	}
	told, err := x.options.installation.unwritable(ctx, x.client, stored)
	if err != nil {
		return ask.Explanation{}, err
	}
	shard := ledger.ShardOf(x.options.installation.state, live.Key())
	s.Unwritable = slices.DeleteFunc(told, func(t announce.Told) bool { return t.About != shard })
	if err := x.details(ctx, &s); err != nil {
		return ask.Explanation{}, err
	}
	return ask.Explain(s), ctx.Err()
}

// live is the view of what can be read now.
func (x *explaining) live(ctx context.Context, s *ask.Situation) (*cluster.Live, error) {
	key, err := access.ReadInstallationKey(ctx, x.client, x.options.installation.namespace, x.options.key)
	hashers := nativeHashers(key)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		delete(hashers.Kinds, input.KindSecret)
	case err != nil:
		return nil, err
	}
	live := cluster.NewLive(x.client, hashers, x.kind, x.at, x.env.Now).Tolerate()
	if err := live.Read(ctx); err != nil {
		return nil, err
	}
	s.Hidden = live.Hidden()
	return live, nil
}

// gather reads what the controller would decide on.
func (x *explaining) gather(ctx context.Context, s *ask.Situation, live *cluster.Live, entry record.Entry, found bool) error {
	w, _ := live.Workload(live.Key())
	s.Workload, s.Entry = w, entry
	s.Namespace, _ = live.Namespace(w.Key.Namespace)
	s.Recorded = found && (entry.TooNew || entry.UID == w.UID)
	if !s.Recorded {
		s.Entry = record.Entry{}
	}
	inputs := configs.New(configs.Options{View: live, Since: unknownSince, Revisions: noHistory})
	gatherer := &follow.Gatherer{
		// What is on record and nothing here asks for is followed by a flag of the controller.
		Vocabulary: settings.Native{Defaults: settings.Defaults{Auto: s.Recorded, Quiet: x.options.quiet}},
		View:       live, Families: []follow.Family{inputs}, Read: func(context.Context) error { return nil },
		Entry:    func(kube.Key) (record.Entry, bool) { return s.Entry, s.Recorded },
		MaxDelay: math.MaxInt64, Now: x.env.Now,
	}
	got, err := gatherer.Gather(ctx, live.Key())
	if err != nil {
		return err
	}
	s.Live = got.Input
	return nil
}

// details reads what people want to know besides.
func (x *explaining) details(ctx context.Context, s *ask.Situation) error {
	template, err := cluster.ReadTemplate(ctx, x.client, s.Workload)
	if err == nil && template != nil {
		s.Places = podrefs.Places(&template.Spec)
	}
	if s.Events, err = announce.ToldOf(ctx, x.client, s.Workload); err != nil {
		s.Unread = append(s.Unread, "events are "+ask.NotVisible+": "+err.Error())
	}
	s.Writers = map[input.ID]kube.Writer{}
	for _, id := range sourcesOf(s) {
		writer, err := cluster.ReadWriter(ctx, x.client, x.at.Namespace, id)
		if err == nil {
			s.Writers[id] = writer
		}
	}
	return ctx.Err()
}

// sourcesOf are the ConfigMaps and Secrets that are followed and exist.
func sourcesOf(s *ask.Situation) []input.ID {
	var all []input.ID
	for _, f := range s.Live.Findings {
		if f.ID.IsSource() && !f.Current.IsAbsent() {
			all = append(all, f.ID)
		}
	}
	return all
}

func (o *explainOptions) print(env Environment, e ask.Explanation) error {
	return o.output.write(env.Stdout, e, func(to io.Writer) error {
		var text bytes.Buffer
		printExplanation(&text, e, env.Now(), o.output.isWide())
		stateLine := 2
		return paint(to, text.Bytes(), func(line int) string {
			if line != stateLine || !env.usesColour() {
				return ""
			}
			return stateColour(e.State)
		})
	})
}

// printExplanation writes an explanation for people.
func printExplanation(to *bytes.Buffer, e ask.Explanation, now time.Time, wide bool) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(to, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("Workload:", "%s in namespace %s", e.Workload, e.Namespace)
	line("Controller:", "%s", strings.TrimPrefix(controllerWords(e.Controller, now), "controller: "))
	line("State:", "%s", stateWords(e.State, now))
	if e.Meaning != "" {
		line("", "%s", strings.ReplaceAll(e.Meaning, "`", ""))
	}
	line("Next:", "%s", nextWords(e.State, now))
	if e.Estimate != nil {
		line("Estimate:", "%s: %s; the controller has not said so yet", e.Estimate.Reason, e.Estimate.Message)
	}
	for i, s := range e.Settings {
		name := ""
		if i == 0 {
			name = "Settings:"
		}
		line(name, "%s: %s (on the %s)", s.Key, settings.Shorten(s.Value), s.On)
	}
	for _, note := range e.Notes {
		line("Note:", "%s", note)
	}
	printUses(to, e.Inputs, now)
	printTold(to, "WARNING", e.Warnings, now)
	events := e.Events
	if last := 5; len(events) > last && !wide {
		events = events[len(events)-last:]
	}
	printTold(to, "EVENT", events, now)
}

func stateWords(s ask.State, now time.Time) string {
	words := s.Reason
	if s.Since != nil {
		words += " since " + age(s.Since, now)
	}
	if s.Message != "" {
		words += ": " + s.Message
	}
	switch s.From {
	case ask.FromEvent:
		words += " (from the newest event)"
	case ask.FromEstimate:
		words += " (an estimate: the controller has nothing on record of it)"
	}
	return words
}

// nextWords say what happens next and when, or what has to.
func nextWords(s ask.State, now time.Time) string {
	switch {
	case s.IsInStep():
		return "nothing, until an input changes"
	case s.Next != nil:
		return "the controller looks again " + until(s.Next, now) + "; it ends with " + s.Ends
	case s.Ends != "":
		return "it ends with " + s.Ends
	}
	return "nothing is planned"
}

func printUses(to io.Writer, uses []ask.Use, now time.Time) {
	if len(uses) == 0 {
		return
	}
	_, _ = fmt.Fprintln(to)
	table := newColumns(to)
	err := table.row("INPUT", "GIVEN", "NOW", "CHANGED", "USED IN")
	for _, u := range uses {
		changed := "-"
		if u.ChangedBy != "" {
			changed = age(u.ChangedAt, now) + " ago by " + u.ChangedBy
		}
		err = errors.Join(err, table.row(u.Input, dashed(u.Delivered), useNow(u), changed, dashed(strings.Join(u.Places, "; "))))
	}
	_ = errors.Join(err, table.Flush())
}

// useNow is what exists of an input, and what stands in its way.
func useNow(u ask.Use) string {
	words := dashed(u.Current)
	switch {
	case u.Hidden != "" && u.Current != "":
		words += " (on record; " + ask.NotVisible + ")"
	case u.Hidden != "":
		words = ask.NotVisible
	case !u.Followed:
		words = "not followed"
	}
	if u.Note != "" {
		words += " " + u.Note
	}
	return words
}

func printTold(to io.Writer, what string, events []ask.Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	_, _ = fmt.Fprintln(to)
	table := newColumns(to)
	err := table.row("AGE", "REASON", what)
	for _, e := range events {
		err = errors.Join(err, table.row(age(&e.At, now), e.Reason, e.Note))
	}
	_ = errors.Join(err, table.Flush())
}
