package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// FailureKind is what a failure means for the caller.
type FailureKind string

// The kinds of failures.
const (
	// Unreachable is a registry that does not respond, or not in time.
	Unreachable FailureKind = "Unreachable"
	// Denied is a registry that requires other credentials.
	Denied FailureKind = "Denied"
	// Missing is a repository, tag or manifest that does not exist.
	Missing FailureKind = "Missing"
	// Limited is a registry that refuses requests until a certain time.
	Limited FailureKind = "Limited"
	// Broken is a response that doesn't make sense, such as an internal error.
	Broken FailureKind = "Broken"
	// Untrue is a response that contradicts itself. It isn't used.
	Untrue FailureKind = "Untrue"
	// TooLarge is a response beyond a bound of this client. It isn't used.
	TooLarge FailureKind = "TooLarge"
	// NoMatch is a repository without a wanted tag.
	NoMatch FailureKind = "NoMatch"
	// NoPlatform is an image that does not exist for a required platform.
	NoPlatform FailureKind = "NoPlatform"
	// Shrunk is a list of tags that lacks the newest tag of an earlier list.
	Shrunk FailureKind = "Shrunk"
)

// Error is a failed query.
type Error struct {
	Kind FailureKind
	// What was queried: "digest of registry.example/app:1".
	What string
	// Answer of the registry, in its own words if it sent any.
	Answer string
	// Status is the response's status code, or 0.
	Status int
	// Advice is what the user can do.
	Advice string
	// Bound is the limit that was reached, if that is the failure.
	Bound Bound
	// Until is when the registry may be queried again, if it said so.
	Until time.Time
	// Cause is the underlying error, if there is one.
	Cause error
}

// Error reports the query, the response and the advice.
func (e *Error) Error() string {
	text := e.What + ": " + e.Answer
	if e.Cause != nil {
		text += ": " + strings.ReplaceAll(e.Cause.Error(), "\n", ", ")
	}
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf is the kind of an error, or empty if it isn't a registry error.
func KindOf(err error) FailureKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// wasRefused reports whether a registry responded with the status.
func wasRefused(err error, status int) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == status
}

func untrue(what, answer string, args ...any) *Error {
	return &Error{Kind: Untrue, What: what, Answer: fmt.Sprintf(answer, args...), Advice: "the answer is not used: contact the owner of the registry"}
}

// NoAnswer is the error of a query without a response.
func NoAnswer(what, host string, err error) *Error {
	// net/http quotes headers in its errors.
	if text := err.Error(); len(text) > maxText {
		err = errors.New(printable(text))
	}
	return &Error{
		Kind: Unreachable, What: what, Answer: "no answer from " + host, Cause: err,
		Advice: "check the name, the network, and whether this registry needs plain HTTP or a private CA",
	}
}

// refusal makes an error from an unexpected response. who is the registry or its token server. The
// reason phrase isn't repeated, because the registry chooses it.
func (s *session) refusal(what, who string, response *http.Response) *Error {
	status := response.StatusCode
	e := &Error{What: what, Status: status, Answer: strings.TrimSpace(fmt.Sprintf("%s answered %d %s", who, status, http.StatusText(status))) + registryMessage(response)}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Kind, e.Advice = Denied, "add a pull secret for "+s.host.name+" with read access, or check that the repository exists"
	case status == http.StatusNotFound:
		e.Kind, e.Advice = Missing, "check the repository and tag names"
	case status == http.StatusTooManyRequests:
		e.Kind, e.Advice = Limited, "Lockstep pauses for a while; a pull secret may have a higher limit"
	case status >= http.StatusInternalServerError:
		e.Kind, e.Advice = Broken, "Lockstep tries again later"
	default:
		e.Kind, e.Advice = Broken, "a registry doesn't answer like this: check the host"
	}
	if until := s.until(""); until.After(time.Now()) {
		e.Until = until
	}
	return e
}

// registryMessage is the registry's own error message, made safe to print.
func registryMessage(response *http.Response) string {
	var body struct {
		Errors []struct{ Code, Message string }
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, smallBody))
	if err != nil || json.Unmarshal(text, &body) != nil || len(body.Errors) == 0 {
		return ""
	}
	return " (" + printable(body.Errors[0].Code+": "+body.Errors[0].Message) + ")"
}
