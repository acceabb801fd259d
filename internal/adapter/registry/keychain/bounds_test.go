package keychain

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// hostile is an API server whose objects a tenant has filled.
type hostile struct {
	client.Reader
	text  string   // of each Secret
	named []string // by each service account
	reads int      // of Secrets
}

func (h *hostile) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *corev1.ServiceAccount:
		o.ImagePullSecrets = refs(h.named)
		o.Secrets = make([]corev1.ObjectReference, 1000)
	case *corev1.Secret:
		h.reads++
		o.Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte(h.text)}
	}
	return nil
}

func refs(names []string) (list []corev1.LocalObjectReference) {
	for _, name := range names {
		list = append(list, corev1.LocalObjectReference{Name: name})
	}
	return list
}

// named are this many different names.
func named(count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprint("pull-", i))
	}
	return names
}

func app() tagspec.Repository { return tagspec.Repository{Host: "registry.example", Path: "app"} }

const oneLogin = `{"auths":{"registry.example":{"username":"a","password":"b"}}}`

// TestManyPullSecrets: a Secret is read once, however often a workload names it, and few are read for
// one workload. The error says so.
func TestManyPullSecrets(t *testing.T) {
	t.Parallel()
	padded := oneLogin + strings.Repeat(" ", 600<<10)
	for name, c := range map[string]struct {
		text    string
		names   []string
		reads   int
		tooMany bool
	}{
		"Same":  {oneLogin, strings.Fields(strings.Repeat("pull ", 1500)), 1, false},
		"Most":  {oneLogin, named(32), 32, false},
		"More":  {oneLogin, named(1500), 32, true},
		"Large": {padded, named(5), 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for from, account := range map[string]Account{"pod": {Namespace: "shop", Secrets: c.names}, "service account": {Namespace: "shop", ServiceAccount: "default"}} {
				server := &hostile{text: c.text, named: c.names}
				found, err := NewPods(server, time.Minute).For(account).Credentials(t.Context(), app())
				if len(found) != 1 || server.reads != c.reads || errors.Is(err, ErrTooManySecrets) != c.tooMany {
					t.Errorf("%s: %d credentials after %d reads, error %v; want one after %d reads", from, len(found), server.reads, err, c.reads)
				}
			}
		})
	}
}

// TestUnreadPullSecrets: the error is short, however many can't be read.
func TestUnreadPullSecrets(t *testing.T) {
	t.Parallel()
	_, err := NewPods(&hostile{text: "hunter2"}, time.Minute).For(Account{Namespace: "shop", Secrets: named(1500)}).Credentials(t.Context(), app())
	if err == nil || len(err.Error()) > 1000 || !strings.Contains(err.Error(), "shop/pull-4: is not the JSON") || !strings.Contains(err.Error(), "and 27 more") {
		t.Errorf("error is %.2000v", err)
	}
}

// TestNames: of a list that an object names, little is kept.
func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	got := podrefs.PullSecrets(refs(append([]string{long, "a", "b", "a", long}, named(1000)...)))
	if len(got) != 33 || got[1] != "a" || got[2] != "b" || got[3] != "pull-0" || len(got[0]) != 254 {
		t.Errorf("%d names, beginning with %.300q", len(got), got)
	}
	account := slim(&corev1.ServiceAccount{ImagePullSecrets: refs(named(1000)), Secrets: make([]corev1.ObjectReference, 1000)}).(*corev1.ServiceAccount)
	if len(account.ImagePullSecrets) != 33 || account.Secrets != nil {
		t.Errorf("%d pull secrets and %d Secrets of a service account are kept", len(account.ImagePullSecrets), len(account.Secrets))
	}
}

// TestManyLogins: logins for other registries aren't decoded, and of those for the registry the most
// specific are kept. Not parallel, because it measures.
func TestManyLogins(t *testing.T) {
	others, matching := map[string]login{}, map[string]login{}
	for i := range 30_000 {
		others[fmt.Sprintf("h%x", i)] = login{Username: "a", Password: "b"}
	}
	for i := range 5000 {
		matching[fmt.Sprintf("registry[%04dx.]example", i)] = login{Username: "other"} // This pattern has one label.
		matching[fmt.Sprintf("[%04dr]egistry.example", i)] = login{Username: fmt.Sprint("u", i), Password: "p"}
	}
	matching["registr[y"+strings.Repeat("y", 1<<10)+"].example"] = login{Username: "long pattern", Password: "p"}
	matching["registry.example"] = login{Username: "exact", Password: "p"}
	matching["registry.example/app"] = login{Username: "longest", Password: "p"}
	for reason, c := range map[string]struct {
		logins map[string]login
		want   int
	}{"others": {others, 0}, "matching": {matching, MaxTried + 1}} {
		text, err := json.Marshal(map[string]any{"auths": c.logins})
		if err != nil {
			t.Fatal(err)
		}
		isLong := func(c Credential) bool { return c.Username == "long pattern" }
		r := ring{repository: app()}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err = r.addConfig(text)
		runtime.ReadMemStats(&after)
		found := r.credentials()
		if err != nil || len(found) != c.want || c.want > 0 && (found[0].Username != "longest" || found[1].Username != "exact" || slices.ContainsFunc(found, isLong)) {
			t.Errorf("%s: %d credentials, error %v", reason, len(found), err)
		}
		if perLogin := (after.TotalAlloc - before.TotalAlloc) / uint64(len(c.logins)); c.want == 0 && perLogin > 300 {
			t.Errorf("%s: %d bytes are allocated for each login", reason, perLogin)
		}
	}
}

// TestLargeTextsWait: one large Secret is decoded at a time. Small ones don't wait for it.
func TestLargeTextsWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct{ padding, want int }{{0, 1}, {64 << 10, 0}} {
		pods := NewPods(&hostile{text: oneLogin + strings.Repeat(" ", c.padding)}, time.Minute)
		account := Account{Namespace: "shop", Secrets: []string{"pull"}}
		if found, err := pods.For(account).Credentials(t.Context(), app()); len(found) != 1 || err != nil {
			t.Errorf("%d credentials, error %v", len(found), err)
		}
		if err := pods.large.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if found, _ := pods.For(account).Credentials(ctx, app()); len(found) != c.want {
			t.Errorf("padding of %d bytes: %d credentials while another Secret is decoded, want %d", c.padding, len(found), c.want)
		}
	}
}

// TestAccountIsShort: it is kept for every image of a workload.
func TestAccountIsShort(t *testing.T) {
	t.Parallel()
	seen := map[string]Account{}
	for _, a := range []Account{
		{"shop", "a", nil},
		{"shop", "b", nil},
		{"other", "a", nil},
		{"shop", "", named(200)},
		{"shop", "", named(201)},
		{"shop", "", []string{"a", "b"}},
		{"shop", "", []string{"a,b"}},
		{"shop", "", []string{"b", "a"}},
		{"shop", "", []string{"a"}},
	} {
		text := a.String()
		if other, ok := seen[text]; ok {
			t.Errorf("%.100q and %.100q have the same name", a, other)
		}
		if seen[text] = a; len(text) > 64 {
			t.Errorf("%d bytes", len(text))
		}
	}
	if (Account{"shop", "a", []string{"pull"}}).String() != (Account{"shop", "b", []string{"pull"}}).String() {
		t.Error("pods with the same pull secrets don't share answers")
	}
}

// TestUnusableLogins: a credential that can't be sent is reported and not used, and the others are.
func TestUnusableLogins(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	for reason, c := range map[string]struct {
		login login
		want  string
	}{
		"line break in a token":    {login{RegistryToken: "hunter2\nb"}, "control characters"},
		"zero in a user name":      {login{Username: "hunter2\x00b", Password: "p"}, "control characters"},
		"line break in auth":       {login{Auth: base64.StdEncoding.EncodeToString([]byte("hunter2\r\n:p"))}, "control characters"},
		"long token":               {login{RegistryToken: long}, "longer than 8192 bytes"},
		"long password":            {login{Username: "hunter2", Password: long}, "longer than 8192 bytes"},
		"long identity token":      {login{IdentityToken: long}, "longer than 8192 bytes"},
		"a JSON key as a password": {login{Username: "_json_key", Password: "{\n\t\"private_key\": \"hunter2\"\n}\n"}, ""},
	} {
		text, err := json.Marshal(map[string]any{"auths": map[string]login{"registry.example": c.login, "registry.example/a": {Username: "good", Password: "p"}}})
		if err != nil {
			t.Fatal(err)
		}
		server := &hostile{text: string(text)}
		found, err := NewPods(server, time.Minute).For(Account{Namespace: "shop", Secrets: []string{"pull"}}).Credentials(t.Context(), app())
		want := 1
		if c.want == "" {
			want = 2
		}
		if len(found) != want || found[0].Username != "good" {
			t.Errorf("%s: %d credentials, want %d", reason, len(found), want)
		}
		said := fmt.Sprint(err)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(said, "shop/pull: credentials for registry.example: can't be used") || !strings.Contains(said, c.want) || strings.Contains(said, "hunter2") {
			t.Errorf("%s: error is %.300s", reason, said)
		}
	}
}
