package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// requests counts by verb and resource: "patch deployments".
type requests map[string]int

// minus is the difference to an earlier count.
func (r requests) minus(earlier requests) requests {
	left := requests{}
	for what, n := range r {
		if n > earlier[what] {
			left[what] = n - earlier[what]
		}
	}
	return left
}

// verb is the number of requests with a verb.
func (r requests) verb(verbs ...string) int {
	sum := 0
	for what, n := range r {
		for _, v := range verbs {
			if strings.HasPrefix(what, v+" ") {
				sum += n
			}
		}
	}
	return sum
}

// discovery is the number of requests for the installed kinds. They are independent of a
// change: a program requests a missing kind again and again, at growing intervals.
func (r requests) discovery() int {
	sum := 0
	for what, n := range r {
		if strings.HasPrefix(what, "get discovery") {
			sum += n
		}
	}
	return sum
}

func (r requests) total() int {
	sum := 0
	for _, n := range r {
		sum += n
	}
	return sum
}

// auditEvent is the part of an audit log line that is read.
type auditEvent struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	ObjectRef  *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// counts reports whether the event is the one that counts for its request: a watch when it
// starts, anything else when it ends.
func (e auditEvent) counts() bool {
	if e.Verb == "watch" {
		return e.Stage == "ResponseStarted"
	}
	return e.Stage == "ResponseComplete" || e.Stage == "Panic"
}

// what names the request. A watch that starts with all objects is a streaming list, and has
// its own verb here; refusals are counted separately.
func (e auditEvent) what() string {
	what := e.Verb + " discovery"
	if e.ObjectRef != nil && e.ObjectRef.Resource != "" {
		what = e.Verb + " " + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
	}
	if e.Verb == "watch" && strings.Contains(e.RequestURI, "sendInitialEvents=true") {
		what = "stream" + strings.TrimPrefix(what, "watch")
	}
	if e.ResponseStatus != nil && e.ResponseStatus.Code >= 400 {
		what += " (" + strconv.Itoa(e.ResponseStatus.Code) + ")"
	}
	return what
}

// readAudit counts the requests in the API server's audit log.
func readAudit(path string) (requests, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return requests{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	return countAudit(file)
}

func countAudit(log io.Reader) (requests, error) {
	counted := requests{}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return counted, nil // An incomplete line is still being written.
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if e.counts() {
			counted[e.what()]++
		}
	}
}
