// A Qt application in C++ whose main loop is watched by its waits, and stalls once. `make c-loops` builds and runs it.
//
//     g++ -O2 -g -fPIC watch-qt.cpp $(pkg-config --cflags --libs stallagent-waits Qt5Widgets) -o watch-qt
//     QT_QPA_PLATFORM=offscreen watch-qt [STORE]
//
// Without STORE: stalls.sqlite, here or in the directory that systemd gives a service for its state.
#include <QApplication>
#include <QElapsedTimer>
#include <QLabel>
#include <QThread>
#include <QTimer>
#include <cstdio>
#include <stall_agent.h>

__attribute__((noinline)) void layOutPages() {
    QThread::msleep(600);
    __asm__ volatile("");  // keeps the call above from becoming a jump, which leaves no frame
}

static void click() {
    QElapsedTimer clock;
    clock.start();
    layOutPages();
    std::printf("layOutPages took %d ms\n", static_cast<int>(clock.elapsed()));
}

int main(int count, char **arguments) {
    QApplication app(count, arguments);
    char error[200];
    stall_agent_configuration configuration = {};
    configuration.app = "in-qt";
    configuration.version = "1.0";
    configuration.store = count > 1 ? arguments[1] : nullptr;
    stall_agent *agent = stall_agent_start(&configuration, error, sizeof error);
    if (!agent) return std::fprintf(stderr, "%s\n", error), 1;

    int frames = 0;
    QLabel label("frames");
    label.show();
    QTimer animation;
    QObject::connect(&animation, &QTimer::timeout, [&] { label.setNum(++frames); });
    animation.start(20);
    QTimer::singleShot(1000, click);
    QTimer::singleShot(3000, &app, &QApplication::quit);

    stall_watched_waits *waits = stall_agent_watch_waits(agent, "qt", 0);
    app.exec();
    std::printf("%d frames, %s\n", frames, stall_watched_waits_count(waits) > 0 ? "waits seen" : "no waits seen");
    stall_watched_waits_free(waits);

    stall_agent_stop(agent);
    return 0;
}
