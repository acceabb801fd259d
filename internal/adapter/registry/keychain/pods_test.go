package keychain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// secrets stands in for the API server: what is tested is how often it is asked. That
// real Secrets are read is tested in test/reload.
type secrets struct {
	client.Reader
	reads int
	err   error
}

func (s *secrets) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.reads++
	switch o := into.(type) {
	case *corev1.ServiceAccount:
		o.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	case *corev1.Secret:
		o.Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"registry.example":{"username":"a","password":"b"}}}`)}
	}
	return s.err
}

// TestPodsReadOnlyWhatTheyMay: a pull secret that is not listed is not asked for, and the
// mistake says which may be read.
func TestPodsReadOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	reader := &secrets{}
	pods := NewPods(reader, time.Minute)
	pods.Only = []string{"shared"}
	if _, err := pods.Secret(t.Context(), "shop", "private"); err == nil || !strings.Contains(err.Error(), "shared") || reader.reads != 0 {
		t.Errorf("%d reads of a Secret that is not listed, error %v", reader.reads, err)
	}
	if _, err := pods.Secret(t.Context(), "shop", "shared"); err != nil || reader.reads != 1 {
		t.Errorf("%d reads of one that is listed, error %v", reader.reads, err)
	}
}

// TestPodsKeepNothingForLong: a Secret is read once for all who ask within the time, and
// again after it.
func TestPodsKeepNothingForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := &secrets{}
		pods := NewPods(reader, time.Minute)
		repository, err := tagspec.ParseRepository("registry.example/app")
		if err != nil {
			t.Fatal(err)
		}
		ask := func() int {
			found, _ := pods.For(Account{Namespace: "shop", ServiceAccount: "default"}).Credentials(t.Context(), repository)
			return len(found)
		}
		for range 3 {
			if ask() != 1 {
				t.Error("the credential of the service account is not found")
			}
		}
		if reader.reads != 2 {
			t.Errorf("%d requests for a service account and its Secret", reader.reads)
		}
		time.Sleep(time.Minute)
		reader.err = errors.New("no answer")
		if ask() != 0 {
			t.Error("a credential is kept after the time")
		}
		reader.err = nil
		time.Sleep(time.Second)
		synctest.Wait()
		if ask() != 1 {
			t.Error("a failure is kept for longer than a moment")
		}
	})
}

// large is an API server whose pull secrets have 1 MiB each.
type large struct {
	client.Reader
	reads atomic.Int64
	now   atomic.Int64
	most  atomic.Int64
}

func (l *large) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	l.reads.Add(1)
	l.most.Store(max(l.most.Load(), l.now.Add(1)))
	defer l.now.Add(-1)
	time.Sleep(time.Second)
	secret := into.(*corev1.Secret)
	secret.ManagedFields = make([]metav1.ManagedFieldsEntry, 100)
	secret.Data = map[string][]byte{corev1.DockerConfigJsonKey: make([]byte, 1<<20), "other": make([]byte, 1<<20)}
	return nil
}

// TestLargePullSecrets: few are read at the same time, and few of them are kept.
func TestLargePullSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &large{}
		pods := NewPods(server, time.Hour)
		var reading sync.WaitGroup
		for i := range 40 {
			reading.Go(func() {
				got, err := pods.Secret(t.Context(), "shop", fmt.Sprint("pull-", i))
				if err != nil || len(got.Data) != 1 || got.ManagedFields != nil {
					t.Errorf("%d keys and %d managed fields are kept, error %v", len(got.Data), len(got.ManagedFields), err)
				}
			})
		}
		reading.Wait()
		if most := server.most.Load(); most != 8 {
			t.Errorf("%d reads at the same time, want 8", most)
		}
		before := server.reads.Load()
		for i := range 40 {
			_, _ = pods.Secret(t.Context(), "shop", fmt.Sprint("pull-", i))
		}
		if again := server.reads.Load() - before; again < 25 {
			t.Errorf("%d of 40 were read again, so more than 16 MiB were kept", again)
		}
	})
}
