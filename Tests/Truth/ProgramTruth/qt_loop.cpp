// A Qt event loop without a screen, with planted stalls: PLANTS SECONDS-OF-IDLE. Each line it prints is a plant, as in
// asyncio_loop.py.
#include <QApplication>
#include <QLabel>
#include <QProcess>
#include <QThread>
#include <QTimer>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <thread>

static double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static unsigned randomTime(unsigned from, unsigned to) { return from + std::rand() % (to - from); }

__attribute__((noinline)) static void plantedSleep() { QThread::msleep(randomTime(300, 600)); }

__attribute__((noinline)) static void plantedSpin() {
    const double end = now() + randomTime(300, 600) / 1e3;
    while (now() < end) {}
}

__attribute__((noinline)) static void plantedLock() {
    static std::mutex mutex;
    std::thread holder([] {
        std::lock_guard<std::mutex> held(mutex);
        QThread::msleep(randomTime(400, 600));
    });
    QThread::msleep(10);
    mutex.lock();
    mutex.unlock();
    holder.join();
}

__attribute__((noinline)) static void plantedCommand() { QProcess::execute("sleep", {"0.4"}); }

int main(int count, char **words) {
    if (count != 3) return 64;
    static const struct {
        const char *name;
        void (*site)();
    } sites[] = {
        {"plantedSleep", plantedSleep}, {"plantedSpin", plantedSpin}, {"plantedLock", plantedLock},
        {"plantedCommand", plantedCommand},
    };
    QApplication app(count, words);
    QLabel label("frames");
    label.show();
    int frames = 0, planted = 0, plants = std::atoi(words[1]);
    QTimer animation;
    QObject::connect(&animation, &QTimer::timeout, [&] { label.setNum(++frames); });
    animation.start(20);
    QTimer next;
    next.setSingleShot(true);
    QObject::connect(&next, &QTimer::timeout, [&] {
        const double begin = now();
        sites[planted % 4].site();
        std::printf("%s %.6f %.6f\n", sites[planted % 4].name, begin, now());
        std::fflush(stdout);
        if (++planted < plants) next.start(randomTime(300, 500)); else QTimer::singleShot(500, &app, &QApplication::quit);
    });
    next.start(1000 * std::atof(words[2]) + 300);
    return app.exec();
}
