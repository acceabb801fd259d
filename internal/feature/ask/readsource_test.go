package ask

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

var (
	before  = map[string]string{"port": "old-content-1", "host": "old-content-2"}
	another = map[string]string{"port": "old-content-1", "host": "new-content-2"}
)

// followed is a source that four workloads have on record with the content before: web and all of
// its keys, one and two and its port, lost and its host. Lost doesn't exist any more.
type followed struct {
	id  input.ID
	now map[string]string
	// running is true for a controller that runs.
	running bool
	// forbidden is the name of an object that the user may not read.
	forbidden string
	// got counts the reads of each object.
	got map[string]int
}

func (f *followed) object(values map[string]string) client.Object {
	at := metav1.ObjectMeta{Namespace: "shop", Name: f.id.Name}
	if f.id.Kind == input.KindConfigMap {
		return &corev1.ConfigMap{ObjectMeta: at, Data: values}
	}
	secret := &corev1.Secret{ObjectMeta: at, Data: map[string][]byte{}}
	for key, value := range values {
		secret.Data[key] = []byte(value)
	}
	return secret
}

func (f *followed) version(t *testing.T, values map[string]string, keys fingerprint.Keys) fingerprint.Version {
	t.Helper()
	s, err := kube.NewHashers([]byte(strings.Repeat("k", 32))).Slim(f.object(values), settings.Native{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Content.Version(keys)
}

func (f *followed) read(t *testing.T) SourceExplanation {
	t.Helper()
	own := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "lockstep-system", Name: name, Labels: map[string]string{settings.StateLabel: "true"}}
	}
	shard := &corev1.ConfigMap{ObjectMeta: own("lockstep-state-00"), Data: map[string]string{}}
	objects := []client.Object{shard, &corev1.Secret{ObjectMeta: own(DefaultKey), Data: map[string][]byte{"key": []byte(strings.Repeat("k", 32))}}}
	if f.now != nil {
		objects = append(objects, f.object(f.now))
	}
	for name, keys := range map[string]fingerprint.Keys{"web": fingerprint.AllKeys(), "one": fingerprint.SomeKeys("port"), "two": fingerprint.SomeKeys("port"), "lost": fingerprint.SomeKeys("host")} {
		entry := record.Entry{ID: "Deployment.apps/shop/" + name, UID: name, Inputs: map[input.ID]record.Delivered{f.id: {Version: f.version(t, before, keys)}}, Decision: record.Decision{Reason: input.InStep}}
		text, err := entry.Encode()
		if err != nil {
			t.Fatal(err)
		}
		shard.Data["Deployment.apps_shop_"+name] = text
		w := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "1"}}
		from := &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: f.id.Name}, Key: "port"}}
		if f.id.Kind == input.KindSecret {
			from = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: f.id.Name}, Key: "port"}}
		}
		w.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Env: []corev1.EnvVar{{Name: "PORT", ValueFrom: from}}}}
		if name != "lost" {
			objects = append(objects, w)
		}
	}
	renewed := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	if f.running {
		renewed = metav1.NowMicro()
	}
	objects = append(objects, &coordinationv1.Lease{ObjectMeta: own(DefaultLease), Spec: coordinationv1.LeaseSpec{HolderIdentity: new("pod"), RenewTime: &renewed, LeaseDurationSeconds: new(int32(30))}})
	f.got = map[string]int{}
	c := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, at client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if f.got[at.Name]++; at.Name == f.forbidden {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, at.Name, nil)
			}
			return c.Get(ctx, at, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			all := (&client.ListOptions{}).ApplyOptions(options)
			all.FieldSelector = nil // there is no event
			return c.List(ctx, list, all)
		},
	}).Build()
	r := &Reader{Client: c, Own: Own{Namespace: "lockstep-system"}, Kinds: kube.Kinds(), Now: time.Now}
	e, err := r.Source(t.Context(), "shop", f.id)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(e); err != nil || strings.Contains(string(text), "content") {
		t.Errorf("contents are in the answer, %v: %s", err, text)
	}
	return e
}

// seen is a row of the answer: the state, and the current version in words.
type seen struct{ State, From, Current string }

func rows(e SourceExplanation) map[string]seen {
	all := map[string]seen{}
	for _, u := range e.Users {
		all[strings.TrimPrefix(u.Workload, "deployment/")] = seen{u.State.Reason, u.State.From, e.NowWords(u)}
	}
	return all
}

// TestSourceAsItIs: the current version is that of the object, whatever the record says, for the keys
// that the workload uses.
func TestSourceAsItIs(t *testing.T) {
	t.Parallel()
	for _, id := range []input.ID{input.ConfigMap("app"), input.Secret("db")} {
		f := followed{id: id}
		short := func(values map[string]string, keys fingerprint.Keys) string {
			return f.version(t, values, keys).Short()
		}
		all, port, host := fingerprint.AllKeys(), fingerprint.SomeKeys("port"), fingerprint.SomeKeys("host")
		onRecord := func(words string) map[string]seen {
			inStep := func(keys fingerprint.Keys) seen { return seen{"InStep", FromRecord, short(before, keys) + words} }
			return map[string]seen{"web": inStep(all), "one": inStep(port), "two": inStep(port), "lost": inStep(host)}
		}
		with := func(name string, row seen, rows map[string]seen) map[string]seen {
			rows[name] = row
			return rows
		}
		changed, notKnown := seen{"Changed", FromEstimate, short(another, all)}, seen{"InStep", FromRecord, "not known"}
		absent := func(state, from string) map[string]seen {
			rows := onRecord("")
			for name := range rows {
				rows[name] = seen{state, from, "absent"}
			}
			return rows
		}
		for name, tc := range map[string]struct {
			reason string
			source followed
			want   map[string]seen
		}{
			"Down": {
				"the controller has not seen the change of a key that one and two don't use; the keys of lost aren't known",
				followed{now: another},
				with("web", changed, with("lost", notKnown, onRecord(""))),
			},
			"JustChanged": {"the running controller will look, and vouches for the rest", followed{now: another, running: true}, with("web", changed, onRecord(""))},
			"Unchanged":   {"the record is up to date", followed{now: before, running: true}, onRecord("")},
			"Forbidden":   {"the version on record is said to be that", followed{now: another, forbidden: id.Name}, onRecord(" (on record; not visible to you)")},
			"Gone":        {"nothing exists, and nobody has checked that", followed{}, absent("Changed", FromEstimate)},
			"JustGone":    {"pods can start without it, or the running controller will look", followed{running: true}, absent("InStep", FromRecord)},
		} {
			t.Run(string(id.Kind)+"/"+name, func(t *testing.T) {
				t.Parallel()
				f := tc.source
				f.id = id
				e := f.read(t)
				if diff := cmp.Diff(tc.want, rows(e)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
				if e.Users[0].State.From != tc.want["web"].From {
					t.Errorf("%s: the first row is %+v, want the one that isn't in step", tc.reason, e.Users[0])
				}
				if read := f.got["web"] + f.got["one"] + f.got["two"] + f.got["lost"]; f.got[id.Name] != 1 || read > 2 {
					t.Errorf("%s: %v reads, want one of the source and at most one for each set of keys", tc.reason, f.got)
				}
			})
		}
	}
}

// TestSecretWithoutTheKey: a user who may read a Secret, and not the installation key, sees the
// version on record.
func TestSecretWithoutTheKey(t *testing.T) {
	t.Parallel()
	f := followed{id: input.Secret("db"), now: another, forbidden: DefaultKey}
	want := seen{"InStep", FromRecord, f.version(t, before, fingerprint.AllKeys()).Short() + " (on record; not visible to you)"}
	if e := f.read(t); rows(e)["web"] != want || !strings.Contains(e.Hidden, "installation key") {
		t.Errorf("%+v, hidden because %q; want %+v", rows(e)["web"], e.Hidden, want)
	}
}
