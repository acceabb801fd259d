package mirror

import (
	"context"
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// openTimeout limits the wait for the response to a new watch.
const openTimeout = 10 * time.Second

var errNoAnswer = errors.New("the API server does not answer")

// openWatch opens a watch and reports failures. For a closed or hanging connection, client-go
// makes ten more attempts and then returns an empty watch without an error, so an outage would
// look like a quiet cluster.
func openWatch(ctx context.Context, open func(context.Context) (watch.Interface, error)) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(openTimeout, cancel)
	w, err := open(ctx)
	switch {
	case !late.Stop():
		err = errNoAnswer
	case err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()):
		err = errNoAnswer
	case err == nil:
		return openedWatch{w, cancel}, nil
	}
	cancel()
	if w != nil {
		w.Stop()
	}
	return nil, err
}

// openedWatch cancels its context when it is stopped.
type openedWatch struct {
	watch.Interface

	cancel context.CancelFunc
}

// Stop implements watch.Interface.
func (w openedWatch) Stop() {
	w.Interface.Stop()
	w.cancel()
}
