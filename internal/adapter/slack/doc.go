// Package slack knows how people are told by an incoming webhook of Slack, or of what
// takes its place.
package slack
