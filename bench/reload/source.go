package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// The keys of every source: one that changes, and one that only adds size.
const (
	keyChanging = "key"
	keyWeight   = "weight"
)

// source is a ConfigMap or Secret of the load.
type source struct {
	id     input.ID
	size   int // of the key that changes
	weight int // of the other key, 0 for none
	text   *textPool

	mu      sync.Mutex // held during a write, so the order of writes is known
	serial  int
	data    map[string]string
	written uint64 // the resource version of the last change of content
	at      time.Time
}

// textPool is a block of random text, from which values are cut: generating 700 MB of values
// would make the generator the bottleneck.
type textPool struct{ block string }

func newTextPool() *textPool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = letters[rand.IntN(len(letters))]
	}
	return &textPool{block: string(block)}
}

// cut returns a text of the given size that begins with a number.
func (p *textPool) cut(serial, size int) string {
	head := strconv.Itoa(serial) + " "
	if len(head) >= size {
		return head
	}
	from := rand.IntN(len(p.block) - size)
	return head + p.block[from:from+size-len(head)]
}

func (s *source) create(ctx context.Context, c kubernetes.Interface) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = map[string]string{keyChanging: s.text.cut(s.serial, s.size)}
	if s.weight > 0 {
		s.data[keyWeight] = s.text.cut(s.serial, s.weight)
	}
	about := metav1.ObjectMeta{Name: s.id.Name}
	var made metav1.Object
	var err error
	if s.id.Kind == input.KindSecret {
		data := map[string][]byte{}
		for key, value := range s.data {
			data[key] = []byte(value)
		}
		made, err = c.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: about, Data: data}, metav1.CreateOptions{})
	} else {
		made, err = c.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: about, Data: s.data}, metav1.CreateOptions{})
	}
	return s.wrote(made, err)
}

// change writes new content with one request.
func (s *source) change(ctx context.Context, c kubernetes.Interface) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	s.data[keyChanging] = s.text.cut(s.serial, s.size)
	value := s.data[keyChanging]
	if s.id.Kind == input.KindSecret {
		value = base64.StdEncoding.EncodeToString([]byte(value))
	}
	made, err := s.patch(ctx, c, map[string]any{"data": map[string]string{keyChanging: value}})
	return s.wrote(made, err)
}

// touch changes an annotation, but not the content.
func (s *source) touch(ctx context.Context, c kubernetes.Interface) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	mark := map[string]string{"bench.example.com/touched": strconv.Itoa(s.serial)}
	_, err := s.patch(ctx, c, map[string]any{"metadata": map[string]any{"annotations": mark}})
	return err
}

func (s *source) patch(ctx context.Context, c kubernetes.Interface, change map[string]any) (metav1.Object, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	if s.id.Kind == input.KindSecret {
		return c.CoreV1().Secrets(namespace).Patch(ctx, s.id.Name, types.MergePatchType, body, metav1.PatchOptions{})
	}
	return c.CoreV1().ConfigMaps(namespace).Patch(ctx, s.id.Name, types.MergePatchType, body, metav1.PatchOptions{})
}

func (s *source) wrote(made metav1.Object, err error) error {
	if err != nil {
		return fmt.Errorf("write %s: %w", s.id, err)
	}
	s.written, err = strconv.ParseUint(made.GetResourceVersion(), 10, 64)
	s.at = time.Now()
	return err
}

// lastWrite is the resource version and the time of the last change of content.
func (s *source) lastWrite() (uint64, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written, s.at
}

// digest is the digest that Lockstep shows for the content.
func (s *source) digest(h fingerprint.Hasher) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.At(namespace, string(s.id.Kind), s.id.Name).Content(s.data, nil).Version(fingerprint.AllKeys()).Short()
}
