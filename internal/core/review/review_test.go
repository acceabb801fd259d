package review_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/review"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// texts are findings as people read them: "InvalidValue lockstep.dev/quiet: …".
func texts(all []review.Mistake) []string {
	list := []string{}
	for _, f := range all {
		list = append(list, strings.TrimSuffix(string(f.Severity)+" "+string(f.Rule)+" "+string(f.At)+": "+f.Message, " "))
	}
	return list
}

// set is a map of one key.
func set(key, value string) map[string]string { return map[string]string{key: value} }

func TestOfWorkload(t *testing.T) {
	t.Parallel()
	mounted := podrefs.Ref{Source: input.ConfigMap("app"), Volume: true}
	env := podrefs.Ref{Source: input.Secret("db"), Env: true}
	cases := map[string]struct {
		reason   string
		workload review.Workload
		want     []string
	}{
		"Nothing": {"an object that does not know Lockstep", review.Workload{Annotations: set("example.com/reload", "auto"), Labels: set("app", "web")}, nil},
		"Good":    {"what the documentation shows", review.Workload{Annotations: map[string]string{settings.Reload: "auto, secret/db-*", settings.Quiet: "10s", settings.Hold: "", settings.ImagePrefix + "web": "nginx:1.*"}, Refs: []podrefs.Ref{mounted}, Containers: []string{"web"}}, nil},
		"Auto":    {"there is something to follow", review.Workload{Annotations: set(settings.Reload, "auto"), Refs: []podrefs.Ref{mounted}}, nil},
		"Windows": {"when workloads roll", review.Workload{Annotations: set(settings.Window, "0 2 * * 1-5 2h; 0 0 * * 6 24h UTC"), Namespace: set(settings.Window, "never")}, nil},
		"NoWindow": {"a duration is missing", review.Workload{Annotations: set(settings.Window, "0 2 * * *")}, []string{
			`error InvalidValue annotations: annotation lockstep.dev/window: "0 2 * * *" isn't valid: "0 2 * * *" has 5 fields: write five fields of a cron expression, a duration and…; accepted: a cron expression, a duration and a time zone, such as 0 2 * * 1-5 2h Europe/Berlin, or always`,
		}},
		"After": {"it is no name", review.Workload{Annotations: set(settings.After, "db")}, []string{
			`error InvalidValue annotations: annotation lockstep.dev/after: "db" isn't valid: "db" isn't KIND/NAME; accepted: up to 8 workloads in the same namespace, such as deployment/db, statefulset/cache`,
		}},
		"Misspelt": {"a letter is missing", review.Workload{Annotations: set("lockstep.dev/relod", "auto")}, []string{
			"error UnknownKey annotations: annotation lockstep.dev/relod is unknown and has no effect; did you mean lockstep.dev/reload?",
		}},
		"Far": {"no key is near", review.Workload{Annotations: set("lockstep.dev/schedule", "auto")}, []string{
			"error UnknownKey annotations: annotation lockstep.dev/schedule is unknown and has no effect",
		}},
		"Domain": {"the domain is misspelt", review.Workload{Annotations: map[string]string{"lockstep.de/reload": "auto", "images.lockstep.dev/web": "nginx:1", "lockstep.de/else": ""}}, []string{
			"error UnknownKey annotations: annotation images.lockstep.dev/web is unknown and has no effect; did you mean image.lockstep.dev/web?",
			"error UnknownKey annotations: annotation lockstep.de/reload is unknown and has no effect; did you mean lockstep.dev/reload?",
		}},
		"OtherEnding": {"people know the name, and not the domain", review.Workload{Annotations: map[string]string{"lockstep.io/reload": "auto", "image.lockstep.io/web": "nginx:1", "lockstep.io/else": "", "example.io/reload": ""}}, []string{
			"error UnknownKey annotations: annotation image.lockstep.io/web is unknown and has no effect; did you mean image.lockstep.dev/web?",
			"error UnknownKey annotations: annotation lockstep.io/reload is unknown and has no effect; did you mean lockstep.dev/reload?",
		}},
		"Below": {"the domain is ours, and there is nothing", review.Workload{Annotations: map[string]string{"reload.lockstep.dev/configmap": "app", "what.lockstep.dev/x": ""}}, []string{
			"error UnknownKey annotations: annotation reload.lockstep.dev/configmap is unknown and has no effect; did you mean lockstep.dev/reload?",
			"error UnknownKey annotations: annotation what.lockstep.dev/x is unknown and has no effect",
		}},
		"OnTemplate": {"the controller reads the workload's own annotations", review.Workload{TemplateAnnotations: set(settings.Reload, "auto"), TemplateLabels: set(settings.Quiet, "1s")}, []string{
			"error MisplacedKey template annotations: annotation lockstep.dev/reload has no effect on a pod template; it belongs in the annotations of a workload, namespace, ConfigMap or Secret",
			"error MisplacedKey template labels: label lockstep.dev/quiet has no effect on a pod template; it belongs in the annotations of a workload",
		}},
		"Label": {"a label is not read", review.Workload{Labels: set(settings.Reload, "auto")}, []string{
			"error MisplacedKey labels: label lockstep.dev/reload has no effect on a Deployment; it belongs in the annotations of a workload, namespace, ConfigMap or Secret",
		}},
		"Revisioned": {"a label of sources", review.Workload{Annotations: set(settings.Revisioned, "true")}, []string{
			"error MisplacedKey annotations: annotation lockstep.dev/revisioned has no effect on a Deployment; it belongs in the labels of a ConfigMap or Secret",
		}},
		"Exported": {"kubectl get -o yaml of a workload that was moved", review.Workload{Annotations: set(settings.RolledOutBy, "lockstep-system"), TemplateAnnotations: set(settings.Inputs, "configmap/app~1")}, []string{
			"warning WrittenByLockstep annotations: annotation lockstep.dev/moved-by is written by Lockstep: leave it out",
			"warning WrittenByLockstep template annotations: annotation lockstep.dev/inputs is written by Lockstep: leave it out",
		}},
		"Values": {"each value that the controller does not understand", review.Workload{Annotations: map[string]string{settings.Quiet: "10", settings.Strategy: "restart"}}, []string{
			`error InvalidValue annotations: annotation lockstep.dev/quiet: "10" isn't valid; accepted: a non-negative duration such as 10s or 2m`,
			`error InvalidValue annotations: annotation lockstep.dev/strategy: "restart" isn't valid; accepted: template, evict or refresh`,
		}},
		"Images": {"specs, platforms and containers", review.Workload{Containers: []string{"web"}, Annotations: map[string]string{
			settings.ImagePrefix + "web": "nginx", settings.ImagePrefix + "wbe": "nginx:1", settings.PlatformPrefix + "other": "linux/arm64",
		}}, []string{
			`error UnknownContainer annotations: annotation image.lockstep.dev/wbe: the pod template doesn't contain a container "wbe"; did you mean web?`,
			`error InvalidImage annotations: annotation image.lockstep.dev/web: "nginx" doesn't name a tag: add one after a colon, such as app:latest or app:1.4.*`,
			"error InvalidImage annotations: annotation platform.lockstep.dev/other has no effect without image.lockstep.dev/other",
		}},
		"NoContainerNamed": {"the key ends too early", review.Workload{Annotations: set(settings.ImagePrefix, "nginx:1")}, []string{
			"error UnknownKey annotations: annotation image.lockstep.dev/ is unknown and has no effect",
			`error UnknownContainer annotations: annotation image.lockstep.dev/: the pod template doesn't contain a container ""`,
		}},
		"NothingToFollow": {"auto follows what is referenced", review.Workload{Annotations: set(settings.Reload, "auto")}, []string{
			"warning NothingToFollow annotations: annotation lockstep.dev/reload: the pod template doesn't use a ConfigMap or Secret, so there is nothing to follow",
		}},
		"Partial": {"the template is that of another object", review.Workload{Partial: true, Annotations: map[string]string{settings.Reload: "auto", settings.ImagePrefix + "web": "nginx:1"}}, nil},
		"NoTemplate": {"it cannot be followed", review.Workload{NoTemplate: "spec.template isn't a pod template", Annotations: set(settings.Reload, "auto")}, []string{
			"error NoTemplate : spec.template isn't a pod template",
		}},
		"NoTemplateNoWish": {"an object that does not ask", review.Workload{NoTemplate: "spec.template isn't a pod template"}, nil},
		"TooMany": {"the controller leaves it alone", review.Workload{Refs: []podrefs.Ref{mounted}, Annotations: set(settings.Reload, strings.Repeat("configmap/a*,", 65))}, []string{
			"error TooManySources annotations: annotation lockstep.dev/reload contains more than 64 patterns",
		}},
		"EvictImage": {"an image comes with the template", review.Workload{Containers: []string{"web"}, Annotations: map[string]string{settings.Strategy: "evict", settings.ImagePrefix + "web": "nginx:1"}}, []string{
			"warning Contradiction annotations: annotation lockstep.dev/strategy: evict does not change the pod template, so image.lockstep.dev/web has no effect; use template",
		}},
		"Enforce": {"there is an image", review.Workload{Containers: []string{"web"}, Annotations: map[string]string{settings.Enforce: "true", settings.ImagePrefix + "web": "nginx:1"}}, nil},
		"EnforceNoImage": {"there is none", review.Workload{Annotations: set(settings.Enforce, "true")}, []string{
			"warning Contradiction annotations: annotation lockstep.dev/enforce has no effect without image.lockstep.dev/CONTAINER",
		}},
		"EnforceMaybe": {"neither true nor false", review.Workload{Containers: []string{"web"}, Annotations: map[string]string{settings.Enforce: "maybe", settings.ImagePrefix + "web": "nginx:1"}}, []string{
			`error InvalidValue annotations: annotation lockstep.dev/enforce: "maybe" isn't valid; accepted: true or false`,
		}},
		"EnforceLabel": {"a label is not read", review.Workload{Labels: set(settings.Enforce, "true")}, []string{
			"error MisplacedKey labels: label lockstep.dev/enforce has no effect on a Deployment; it belongs in the annotations of a workload",
		}},
		"RefreshEnv": {"no refresh reaches an environment", review.Workload{Refs: []podrefs.Ref{mounted, env}, Annotations: set(settings.Strategy, "refresh")}, []string{
			"warning Contradiction annotations: annotation lockstep.dev/strategy: a refresh does not reach secret/db, which is read as environment variables or by subPath; use evict or template",
		}},
		"NeverAndQuiet": {"nothing is followed", review.Workload{Annotations: map[string]string{settings.Reload: "never", settings.Quiet: "1s"}}, []string{
			"warning Contradiction annotations: annotation lockstep.dev/quiet has no effect, because lockstep.dev/reload is never",
		}},
		"NeverButImage": {"images have nothing to do with reload", review.Workload{Containers: []string{"web"}, Annotations: map[string]string{settings.Reload: "never", settings.Quiet: "1s", settings.ImagePrefix + "web": "nginx:1"}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.workload.Kind, tc.workload.Words = "Deployment", settings.Native{}
			if diff := cmp.Diff(append([]string{}, tc.want...), texts(review.OfWorkload(tc.workload, commandline.Nearest))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOfOthers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		got    []review.Mistake
		want   []string
	}{
		"Namespace": {"what a namespace can say", review.OfNamespace(map[string]string{settings.Reload: "auto", settings.Observe: "true"}, nil, commandline.Nearest), nil},
		"NamespaceWrong": {"a list is for workloads", review.OfNamespace(map[string]string{settings.Reload: "configmap/a", settings.Observe: "yes", settings.Quiet: "1s"}, nil, commandline.Nearest), []string{
			`error InvalidValue annotations: annotation lockstep.dev/observe: "yes" isn't valid; accepted: true or false`,
			"error MisplacedKey annotations: annotation lockstep.dev/quiet has no effect on a Namespace; it belongs in the annotations of a workload",
			`error InvalidValue annotations: annotation lockstep.dev/reload: "configmap/a" isn't valid; accepted: auto or never`,
		}},
		"Source": {"what a source can say", review.OfSource("ConfigMap", map[string]string{settings.Reload: "never", settings.Hold: "audit"}, set(settings.Revisioned, "true"), commandline.Nearest), nil},
		"SourceWrong": {"a list is for workloads", review.OfSource("Secret", set(settings.Reload, "true"), set(settings.Revisioned, "yes"), commandline.Nearest), []string{
			`error InvalidValue annotations: annotation lockstep.dev/reload: "true" isn't valid; accepted: auto, match or never`,
			`error InvalidValue labels: label lockstep.dev/revisioned: "yes" has no effect; accepted: true`,
		}},
		"Service": {"what Lockstep does not look at", review.OfOther("Service", set(settings.ImagePrefix+"web", "nginx:1"), nil, commandline.Nearest), []string{
			"error MisplacedKey annotations: annotation image.lockstep.dev/web has no effect on a Service; it belongs in the annotations of a workload",
		}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(append([]string{}, tc.want...), texts(tc.got)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// TestEveryRuleIsExplained: each rule has one row, and each finding of the tables above a rule.
func TestEveryRuleIsExplained(t *testing.T) {
	t.Parallel()
	seen := map[review.Rule]bool{}
	for _, e := range review.Explanations() {
		if seen[e.Rule] || e.Meaning == "" || e.Severity != review.Error && e.Severity != review.Warning {
			t.Errorf("%+v", e)
		}
		seen[e.Rule] = true
	}
}

func TestOfOrder(t *testing.T) {
	t.Parallel()
	const missing = "is gone"
	for name, tc := range map[string]struct {
		reason, text string
		want         string
	}{
		"Chain":      {"one after the other", "shop/web:api shop/api:db shop/db:", ""},
		"Missing":    {"there is no such workload", "shop/web:api", "web: warning MissingReference"},
		"Elsewhere":  {"the order counts in one namespace", "shop/web:api blog/api:", "web: warning MissingReference"},
		"Anywhere":   {"a file without a namespace is for any", "shop/web:api /api:", ""},
		"Cycle":      {"both are told", "shop/web:api shop/api:web", "api: warning Contradiction, web: warning Contradiction"},
		"Itself":     {"a cycle of one", "shop/web:web", "web: warning Contradiction"},
		"LeadsThere": {"it leads to a cycle, and isn't part of it", "shop/web:api shop/api:db shop/db:api", "api: warning Contradiction, db: warning Contradiction"},
	} {
		var all []review.Order
		for field := range strings.FieldsSeq(tc.text) {
			place, after, _ := strings.Cut(field, ":")
			namespace, workload, _ := strings.Cut(place, "/")
			o := review.Order{Namespace: namespace, Name: "deployment/" + workload}
			if after != "" {
				o.After = []string{"deployment/" + after}
			}
			all = append(all, o)
		}
		var got []string
		for i, found := range review.OfOrder(all, missing) {
			for _, f := range found {
				if f.At != review.Annotations || f.Key != settings.After || !strings.Contains(f.Message, settings.After) {
					t.Errorf("%s: %+v", name, f)
				}
				got = append(got, strings.TrimPrefix(all[i].Name, "deployment/")+": "+string(f.Severity)+" "+string(f.Rule))
			}
		}
		slices.Sort(got)
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}
