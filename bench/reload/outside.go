package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// webhookSecret proves that a notification is genuine.
	webhookSecret = "the-secret-of-the-bench"
	// slowClients send notifications without a proof at the same time, and slowBody is what each
	// sends at once; the rest comes byte by byte.
	slowClients = 64
	slowBody    = 512 << 10
	// tagBytes is the length of each tag of the endless list.
	tagBytes = 7_500_000
)

// endlessRegistry is a registry whose lists of tags never end, and which never answers about images
// under silent/. Each page has one tag, which is small on the wire.
type endlessRegistry struct {
	*http.Server

	address string
	filler  []byte // the gzipped middle of a tag
}

func startEndlessRegistry(ctx context.Context) (*endlessRegistry, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the endless registry: %w", err)
	}
	r := &endlessRegistry{address: listener.Addr().String(), filler: zipped(strings.Repeat("a", tagBytes))}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	mux.HandleFunc("GET /v2/endless/tags/list", r.page)
	mux.HandleFunc("/v2/silent/", func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() })
	r.Server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.Serve(listener) }()
	return r, nil
}

// page is made of several gzip streams, so the filler is compressed only once: the registry
// must not take the processor from the program.
func (r *endlessRegistry) page(w http.ResponseWriter, request *http.Request) {
	number, _ := strconv.Atoi(request.URL.Query().Get("last"))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Link", fmt.Sprintf(`</v2/endless/tags/list?last=%d&n=1000>; rel="next"`, number+1))
	_, _ = w.Write(bytes.Join([][]byte{zipped(fmt.Sprintf(`{"name":"endless","tags":["1.%d.0-`, number)), r.filler, zipped(`"]}`)}, nil))
}

func zipped(text string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.WriteString(z, text) // A buffer takes everything.
	_ = z.Close()
	return out.Bytes()
}

// notify sends genuine notifications until the context ends and counts the refused ones, in a
// hostile run beside slow notifications without a proof.
func notify(ctx context.Context, r *trial, hostile bool) error {
	others := []func(context.Context) error{}
	for range slowClients {
		if hostile {
			others = append(others, func(ctx context.Context) error { return notifySlowly(ctx, r.plane.webhook) })
		}
	}
	return whileBusy(ctx, others, func(ctx context.Context) error {
		for sleep(ctx, 500*time.Millisecond) == nil {
			if err := notifyOnce(ctx, r.plane.webhook); err != nil && ctx.Err() == nil {
				if r.seen.refused++; r.seen.refused == 1 {
					say("  a genuine notification was refused: %v", err)
				}
			}
		}
		return nil
	})
}

// notifyOnce sends a genuine notification of an image that nobody follows.
func notifyOnce(ctx context.Context, address string) error {
	body := strings.NewReader(`{"image":"registry.example/team/app:1"}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/generic", body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+webhookSecret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		return errors.New(response.Status)
	}
	return nil
}

// notifySlowly sends half of a body and then byte by byte, again when the program ends it. The
// signature can only be checked at the end of the body.
func notifySlowly(ctx context.Context, address string) error {
	head := fmt.Sprintf("POST /generic HTTP/1.1\r\nHost: %s\r\nX-Hub-Signature-256: sha256=00\r\nContent-Length: %d\r\n\r\n%s",
		address, 2*slowBody, strings.Repeat(" ", slowBody))
	for {
		_ = dribble(ctx, address, head) // An end by the program is expected.
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

func dribble(ctx context.Context, address, head string) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	for next := head; ; next = " " {
		if _, err := io.WriteString(connection, next); err != nil {
			return err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}
