package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// reply is a response with status 200. It holds a slot of its registry until it is closed, and
// room for a large body.
type reply struct {
	client *Client
	call   call
	ctx    context.Context // ends when the reply is closed
	header http.Header
	// body ends with an error beyond the call's limit. It counts decompressed bytes. size is its
	// length, or negative if the registry doesn't say it.
	body    io.Reader
	size    int64
	held    int64
	release func()
}

// Close ends the request. Only then another one may take its slot and its room.
func (r *reply) Close() {
	r.release()
	r.client.large.Release(r.held)
}

// readAll reads the body. A large one waits for room.
func (r *reply) readAll() ([]byte, error) {
	var body bytes.Buffer
	_, err := io.CopyN(&body, r.body, smallBody)
	if err == nil {
		most := r.call.most
		if r.size >= smallBody {
			most = min(most, r.size)
		}
		if r.client.large.Acquire(r.ctx, most) != nil {
			return nil, r.client.exceeded(InFlight, r.call.what, "an answer of more than %d bytes has to wait for others: at most %d bytes are read at the same time", smallBody, maxInFlight)
		}
		r.held = most
		body.Grow(int(most) - body.Len() + bytes.MinRead)
		_, err = io.Copy(&body, r.body)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, r.unread(err, BodyBytes)
	}
	return body.Bytes(), nil
}

// unread is the error of a body that can't be read to its end.
func (r *reply) unread(err error, bound Bound) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return r.client.exceeded(bound, r.call.what, "the answer is longer than %d bytes", tooLarge.Limit)
	}
	return NoAnswer(r.call.what, "the registry, which stopped in the middle", withoutURL(err))
}
